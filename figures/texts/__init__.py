"""What stands beside a picture as text: its caption, a text for those who cannot see it, and tables of its numbers.

`write` puts all of them into files; each other file makes one of them.
"""
