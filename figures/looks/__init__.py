"""How pictures look: the named look of a figure, sizes, colours of methods and classes, matplotlib's style sheets.

`look` is what a user may ask for, `layout` how wide it gets, `style` what axes take from both.
"""
