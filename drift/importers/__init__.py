"""Runs of other programs: checkpoint folders, Flower strategies, FL frameworks by the names of their files.

What they read becomes a run as `drift.runs` opens it; nothing of theirs is executed without trust.
"""
