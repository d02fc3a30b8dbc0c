"""Rules of policies, such as "every 10, last 3"; needs the standard library only, as the recorder uses it."""

import re

_RULE = re.compile(
    r"all|none|every (?P<every>[1-9]\d*)|last (?P<last>[1-9]\d*)|first (?P<first>[1-9]\d*)|at(?P<at>( \d+)+)"
)


def require(policy: str) -> None:
    """Raise ValueError with the first unknown rule of a policy."""
    for rule in policy.split(","):
        if not _RULE.fullmatch(rule.strip()):
            raise ValueError(
                f"cannot read {rule.strip()!r}; a policy is made of all, none, 'every 10', 'last 3', 'first 2', "
                "'at 5 17', joined by commas."
            )


def matches(policy: str, index: int, rounds: int) -> bool:
    """Whether a policy keeps round `index` of `rounds`."""
    return any(_rule_matches(rule.strip(), index, rounds) for rule in policy.split(","))


def counts_from_the_end(policy: str) -> bool:
    """Whether a policy needs to know how many rounds there will be."""
    return "last" in policy


def _rule_matches(rule: str, index: int, rounds: int) -> bool:
    match = _RULE.fullmatch(rule)
    if match is None or rule in ("all", "none"):
        return rule == "all"
    if match["every"]:
        return index % int(match["every"]) == 0
    if match["last"]:
        return index >= rounds - int(match["last"])
    return index < int(match["first"]) if match["first"] else index in map(int, match["at"].split())
