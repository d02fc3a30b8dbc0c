"""Processes that work side by side, and how tensors reach them without copies.

Nothing here knows federated learning.
"""
