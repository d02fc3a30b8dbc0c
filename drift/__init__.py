"""Drift: how federated training moves across the loss landscape.

experiment, read, keep    what a run is, read from TOML
method, methods/          hooks of a federated method, one file each
client, engines/, simulate   local training, where it runs, the round loop
rounds, gram              the record of a round and its inner products
store, run, index, verify    files, a run on disk, what exists, what is whole
writer, packing, locks, repair, recompute   rounds written in the background, packed; who may write; what is lost again
setting, keys, partitions/   data of an experiment, keyed randomness, who holds what
coherence, variance, weights, decomposition, terrain, averages, paths, quality, cost   analyses of a run
around, basin, classes, mixtures, projection, layers, traces   further ones, one idea each
importers/                checkpoints that others wrote, Flower's strategies
recorder, recorded, flat_arrays, plain_files, rules   any loop's rounds recorded, with numpy alone
given                     a task of one's own in place of the recorded one
"""

from landscape import earlier, plugins

earlier.find_in(__name__)
__all__ = plugins.lazy(__name__)
