"""Statistics of batch normalisation in words: those of a model's own, recomputed ones."""


def statistics_text(first: str, first_kind: str, second: str = "", others: str = "") -> str:
    """Which statistics of batch normalisation models have, as in "points have recomputed ..., marks their own".

    Args:
        first: Of which models, with the verb.
        first_kind: Their statistics, as results state them.
        second, others: The same of other models; nothing is said of them where they have the same.
    """
    text = f"{first} {first_kind} statistics of batch normalisation"
    return text if others in ("", first_kind) else f"{text}, {second} {others}: both may differ at one place"
