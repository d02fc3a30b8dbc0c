"""Training of runs and all that a folder of runs needs: simulate, compare, verify, repair, index.

`simulate.simulate` is the entry, `one_round` the round itself.
"""
