"""What a page can ask, one file per kind, and the checks of what it says (`arguments`).

A function takes the `Ask` and values that were checked, runs in a thread of the session and returns plain values. What
computes with models is a function of a module here too, which `Ask.quick` and `Ask.long` call in another process.
"""
