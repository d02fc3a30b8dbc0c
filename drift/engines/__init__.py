"""Engines decide where the cohort's local trainings run; they never change what is computed.

serial   one after the other in this process; the reference
"""
