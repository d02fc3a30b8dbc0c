"""Training of many small models at once: stacks of dense layers, gradients per model.

Used by training loops that bring their own data; nothing here evaluates landscapes.
"""
