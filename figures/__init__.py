"""Figures: every picture of a landscape or of drift, the report and the command line.

style, palette, layout    sizes, fonts, one colour a method, files that are the same bytes every time
curves, surfaces, bars, triangles, spectra, drifts, weights   functions that draw computed data on axes (matplotlib)
gallery/                  named figures, one file each: data(runs) computes, draw(ds) draws
choice, identity          which runs a figure draws, and what it states about them
explore, report           interactive figures (plotly), and one self-contained page of them
explorer, explorer_views  pickers for a notebook, and the pictures that follow them
cli, commands/            the command fedscape
"""

from landscape import earlier, plugins

earlier.find_in(__name__)
__all__ = plugins.lazy(__name__)
