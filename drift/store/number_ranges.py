"""Ascending numbers as ranges."""

from collections.abc import Iterable


def spans(numbers: list[int]) -> str:
    """Ascending numbers as ranges: "0-3, 5"; "none" for no number."""
    texts = [str(group[0]) if len(group) == 1 else f"{group[0]}-{group[-1]}" for group in consecutive(numbers)]
    return ", ".join(texts) or "none"


def consecutive(numbers: Iterable[int]) -> list[list[int]]:
    """Ascending numbers in groups without gaps."""
    groups: list[list[int]] = []
    for number in numbers:
        if groups and number == groups[-1][-1] + 1:
            groups[-1].append(number)
        else:
            groups.append([number])
    return groups
