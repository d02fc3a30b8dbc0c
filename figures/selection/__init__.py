"""Which runs a figure shows, what identifies them, and whether the figure shows something.

Used by gallery, report and commands alike.
"""
