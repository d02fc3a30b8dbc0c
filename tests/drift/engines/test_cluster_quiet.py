"""What Dask logs of a lost scheduler; needs no Dask."""

import logging
from contextlib import suppress

import pytest

from drift.engines.cluster import Lost, quiet

NAMES = ("distributed", "distributed.client", "distributed.core", "tornado.application", "asyncio")


@pytest.fixture
def loggers():
    """Loggers with levels of their own and a handler, as Dask's settings give them."""
    before = {name: logging.getLogger(name).level for name in NAMES}
    for name in NAMES:
        logging.getLogger(name).setLevel(logging.WARNING)
    yield [logging.getLogger(name) for name in NAMES]
    for name, level in before.items():
        logging.getLogger(name).setLevel(level)


def _log(loggers):
    for logger in loggers:
        try:
            raise OSError("the scheduler has stopped")
        except OSError:
            logger.exception("a page of traceback")


def test_a_lost_scheduler_logs_nothing_inside_and_after(loggers, caplog):
    with suppress(Lost), quiet():
        _log(loggers)
        raise Lost("gone")
    _log(loggers)
    assert not caplog.records


def test_levels_come_back_after_a_run(loggers, caplog):
    with quiet():
        pass
    _log(loggers)
    assert len(caplog.records) == len(NAMES)
