"""A model as a function of its parameter vector: layout, samples, loss, metrics, the module bound to a vector.

`task.Task` joins them and is what every analysis takes.
"""
