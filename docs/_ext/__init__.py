"""What the documentation is built with, beside Sphinx.

methods_page the page of methods, from the methods
public       API pages: every public name of a package with its docstring
facts        what `fedscape figures list` says of each figure, by paper
pictures     the gallery page: a card per figure
web_pictures the pictures on those cards, from a folder of drawn figures
"""
