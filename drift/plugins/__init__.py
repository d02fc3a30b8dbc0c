"""How settings name plug-ins, and which code a setting may run.

`tables` reads and writes a plug-in with its options; `trust` is the one rule for code from outside.
"""
