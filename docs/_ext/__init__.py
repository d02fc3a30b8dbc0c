"""What the documentation is built with, beside Sphinx.

methods_page the page of methods, from the methods
public       API pages: every public name of a package with its docstring
facts        what `fedscape figures list` says of each figure, by paper
pictures     the gallery page: those beside thumbnails
thumbnails   makes those thumbnails from a folder of drawn figures
"""
