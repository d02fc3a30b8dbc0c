"""Weights of a round by a rule, and what they give."""

from typing import Any

from drift.analyses.landscapes import round_weights
from drift.analyses.landscapes.round_weights import Weights
from drift.runs.run import Run
from drift.store.round_record import Round
from figures.explore.answers.weights import evaluated, from_values
from figures.explore.ask import Ask
from figures.page.why import lowest_words

WORDS = {
    "equal": "Equal weights of the clients with samples.",
    "own": "The weights that the round took.",
    "fedlaw": "FedLAW's weights, learned on the proxy set.",
}


def best(ask: Ask, run: str, round: int, rule: str, split: str = "test", samples: int | None = None) -> dict[str, Any]:
    """What `weights` returns at the weights of a rule, and words, which say what they are.

    Args:
        run, round: A round that kept its clients.
        rule: equal, own, fedlaw, best (of the lowest loss), or "without 9": FedAvg's of the others.
        split, samples: As in `landscape`.

    Raises:
        ValueError: If there is no such rule, or nothing is left by it.
        LookupError: If the run has no proxy set to learn on.
    """
    opened = ask.run(run, round)
    record = opened.round(round)
    kind, _, number = rule.partition(" ")
    if rule == "fedlaw":
        title = f"weights of round {round}"
        mixture = ask.quick(round_weights.learned_weights, opened, round, round, title=title, priority=8)
    elif rule == "best":
        lowest = ask.quick(_lowest, opened, (round, split, samples), round, title="best weights", priority=8)
        value = evaluated(ask, opened, round, lowest.weights, split, samples)
        return {**value, "words": lowest_words(opened, lowest)}
    elif kind == "without" and number.isdigit():
        mixture = _without(opened, record, int(number))
    elif rule in WORDS:
        mixture = _stated(record, rule)
    else:
        raise ValueError(f"rule is {rule!r}; give best, {', '.join(WORDS)} or 'without 9'.")
    words = WORDS.get(rule, f"FedAvg's weights of the other clients, without client {number}.")
    return {**evaluated(ask, opened, round, mixture, split, samples), "words": words}


def _lowest(run: Run, item: tuple[int, str, int | None]) -> round_weights.Lowest:
    """The weights; in the process of the jobs."""
    from figures.page.best_weights import best_weights  # only that process needs it

    return best_weights(run, *item)


def _stated(record: Round, rule: str) -> Weights:
    if rule == "own":
        return round_weights.own_weights(record)
    return Weights(1.0, Weights.from_values((record.shares[record.ids.argsort()] > 0).double()).shares)


def _without(run: Run, record: Round, client: int) -> Weights:
    ids = sorted(record.ids.tolist())
    if client not in ids:
        raise ValueError(f"round {record.index} has clients {ids}, no client {client}; name one of them.")
    shares = dict(zip(ids, round_weights.by_size(run, record).shares, strict=True))
    try:
        return from_values(record.index, ids, {**shares, client: 0.0}, 1.0)
    except ValueError:
        raise ValueError(f"without client {client} no client with samples is left; leave out another one.") from None
