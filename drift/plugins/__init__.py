"""Names of plug-ins in settings, and the code that settings may run.

`tables` reads and writes a plug-in with its options; `trust` is the rule for code from outside.
"""
