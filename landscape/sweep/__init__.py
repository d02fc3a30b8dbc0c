"""The one evaluator: losses at affine combinations of a few models, and what makes it fast.

`evaluate.evaluate` is the entry; `grid` describes points, `worker` does a piece of them.
"""

from landscape import earlier

__getattr__ = earlier.moved_names(__name__, "landscape.sweep.grid")
