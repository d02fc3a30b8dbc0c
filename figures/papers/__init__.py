"""The four papers' figures and tables: what each shows, which runs it needs, and what the paper prints.

One file NAME.toml per paper, in its order of items:

    [[items]]
    item = "Fig. 6a"                                     # as the paper numbers it
    shows = "accuracy with and without IMA over the Dirichlet concentration"
    claim = "the gain shrinks as the concentration grows"
    figure = "accuracy-setting"                          # file in figures/gallery, dashed
    options = { over = "clients.concentration" }         # of the figure's data()
    experiment = "ima-cifar10-dir01"                     # preset with the paper's setting
    quick = "ima-cifar10-dir01-quick"                    # the same in minutes on two cores
    grid = { method = ["fedavg", "ima"], "clients.concentration" = [0.05, 0.1, 0.8] }   # one table or a list of them
    quick_grid = { ... }                                 # in place of grid, where the quick variant crosses less
    quick_options = { ... }                              # in addition to options for quick runs: fewer points
    numbers = [{ row = "fedavg", column = "0.1", value = 61.0 }]   # tables: what the paper prints

An item in several settings has `settings = [{ label = ..., experiment = ..., quick = ... }, ...]` in place of
experiment and quick. `set = ["KEY=VALUE"]` holds further settings of the runs (`quick_set` those of the quick variant
if they differ), and `prepare` a command to be run first if the settings name a checkpoint (init), such as fedscape
pretrain.

    catalogue   reads these files
    needed      the runs that an item needs, those of them in a folder, and the commands that train the others
"""

from landscape import plugins

__all__ = plugins.lazy(__name__)
