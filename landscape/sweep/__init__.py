"""The one evaluator of losses at affine combinations of a few models, and its optimisations.

`evaluate.evaluate` is the entry; `grid` describes points, `worker` evaluates chunks of them.
"""
