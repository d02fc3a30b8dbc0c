"""Numbers per round from the recorded updates: coherence, drift variances, norms, labels, cost.

Most read the Gram matrix of a round only.
"""
