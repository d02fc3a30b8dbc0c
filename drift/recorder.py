"""The recorder by the path that training scripts import; it is defined in `drift.record.recorder`."""

from drift.record.recorder import Recorder

__all__ = ["Recorder"]
