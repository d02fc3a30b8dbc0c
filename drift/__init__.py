"""Drift: federated training and its record, and analyses of drift across the loss landscape.

Rooms from the lowest to the highest; a room imports only rooms below it (docs/architecture.md):

plugins, partitions    plug-ins in settings; which client holds which samples
store, config          files of a run; settings and identity of an experiment
parallel               worker processes, tensors in shared memory
training, methods      one client and one server; the federated methods, one file each
engines                where clients are trained
record, runs           rounds of other programs recorded; a recorded run
simulation             training, comparing, verifying and repairing runs
analyses, diagnosis    labelled datasets of a run; causes and advice
importers, claims      runs of other programs; statements of papers, checked on runs
trackers               metrics for experiment trackers
"""

from landscape import plugins

__all__ = plugins.lazy(__name__)
