"""A campaign: a committed plan of many runs, trained in order of value per hour, whose numbers outlive the runs.

plan       the plan file: items, settings, seeds, claims, cost; which run comes next
records, recorded_run   one small committed file per finished run, and the run that such a file stands for
series     numbers of rounds in such a file
execute    trains what a budget allows, begins runs from runs that share their first rounds, writes the records
judge      the claims' verdicts from these files
"""
