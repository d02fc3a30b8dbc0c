"""An error whose advice is for commands and Python; a page, where runs are ticked, leaves the advice out."""


class Advised(ValueError):
    """Two texts: what is wrong, and what to do in a command or in Python. As text it is both."""

    def __str__(self) -> str:
        return " ".join(self.args)


def without_advice(reason: BaseException) -> str:
    """What is wrong, for a page."""
    return str(reason.args[0] if isinstance(reason, Advised) else reason)
