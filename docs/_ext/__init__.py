"""What the documentation is built with, beside Sphinx.

methods_page the page of methods, from the methods
public       API pages: the public names of a package by room, and a page for each with its docstring
drawn_with   figures of the gallery that are drawn with a function
formulas     formulas as MathML, and codes of papers.md as targets of links
facts        what `fedscape figures list` says of each figure, by paper
pictures     the gallery page: a card per figure
web_pictures the pictures on those cards, from a folder of drawn figures
tutorials    the pictures of the tutorials, by the commands that their pages show
"""
