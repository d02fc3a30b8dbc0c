"""The verbs of the command line, one file per group, named after its main verb; `pictures` has the figures.

`options` and `opening` are what verbs share. Nothing heavy is imported until a verb runs.
"""
