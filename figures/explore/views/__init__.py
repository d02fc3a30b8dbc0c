"""The views of the explorer, one per file; the file's name is the view's name in the address.

runs       table of runs, curves of recorded numbers
round      the cohort of a round
plane      loss and error on the plane through three models
weights    the aggregate of a round at other weights
samples    which samples a model gets wrong
path       the global models over rounds
drift      series of client drift and update change
diagnosis  what is wrong with a run, and what helps
"""
