"""Runs of other programs: checkpoint folders, Flower strategies, FL frameworks by the names of their files.

Imported files become a run that `drift.runs` opens; code of other programs is not executed without trust.
"""
