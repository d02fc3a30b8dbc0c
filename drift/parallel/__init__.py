"""Worker processes, and tensors sent to them without copies.

Nothing here knows federated learning.
"""
