"""The end of a job in the page's list."""

from figures.explore.ask import Ask


def cancel(ask: Ask, job: int) -> bool:
    """Cancel a job by its number; whether it had not ended."""
    active = next((listed for listed in ask.jobs.active if listed.number == job), None)
    if active is not None:
        active.cancel()
    return active is not None
