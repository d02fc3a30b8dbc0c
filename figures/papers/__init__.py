"""The four papers' figures and tables: what each shows, which runs it needs, and what the paper prints.

One file NAME.toml a paper, in its order of items:

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
    quick_options = { ... }                              # beside options, where runs are quick: fewer points
    numbers = [{ row = "fedavg", column = "0.1", value = 61.0 }]   # tables: what the paper prints

An item in several settings has `settings = [{ label = ..., experiment = ..., quick = ... }, ...]` in place of
experiment and quick. Beside experiment, `set = ["KEY=VALUE"]` holds further settings of the runs (`quick_set` those of
the quick variant, where they are others), and `prepare` a command that comes first where these name a checkpoint
(init), such as fedscape pretrain.

    catalogue   these files, read
    needed      which runs an item needs, which of them are in a folder, and the commands that train the others
    drawing     a paper's whole set from a folder of runs
"""

from typing import TYPE_CHECKING

from landscape import plugins

if TYPE_CHECKING:  # a list of figures starts without torch
    from figures.papers.catalogue import Item, Number, Paper, Setting, load, names
    from figures.papers.needed import Found, commands, found

_PUBLIC = {
    "Item": "figures.papers.catalogue",
    "Number": "figures.papers.catalogue",
    "Paper": "figures.papers.catalogue",
    "Setting": "figures.papers.catalogue",
    "load": "figures.papers.catalogue",
    "names": "figures.papers.catalogue",
    "Found": "figures.papers.needed",
    "commands": "figures.papers.needed",
    "found": "figures.papers.needed",
}
__all__ = ["Found", "Item", "Number", "Paper", "Setting", "commands", "found", "load", "names"]
plugins.lazy(__name__, _PUBLIC)
