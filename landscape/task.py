"""Tasks by the path that users import; they are defined in `landscape.model.task`."""

from landscape.model.task import PerSample, Split, Task, cross_entropy, error, metric_units, squared_error

__all__ = ["PerSample", "Split", "Task", "cross_entropy", "error", "metric_units", "squared_error"]
