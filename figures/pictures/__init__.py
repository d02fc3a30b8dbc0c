"""Pictures of results in files: `draw_files` draws a figure of the gallery, `result_picture` is `.plot()` of a result.

Figures themselves are in the gallery.
"""
