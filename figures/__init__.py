"""Figures: every picture of a landscape or of drift, the report and the command line.

style, palette    sizes, fonts, one colour per method, files with the same bytes every time
axes/             functions that draw computed data on axes (matplotlib)
gallery/          named figures, one file each: data(runs) computes, draw(ds) draws
selection/        which runs a figure shows, how they are labelled, and whether it shows something
interactive/      interactive figures (plotly)
papers/           the figures and tables of the four papers, as data
explore/          the explorer: linked views of runs, live
page/             the report: one self-contained page
cli, commands/    the command fedscape
"""

from landscape import plugins

__all__ = plugins.lazy(__name__)
