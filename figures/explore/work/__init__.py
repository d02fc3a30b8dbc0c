"""What the explorer computes with: open runs, jobs in threads and processes, the shelf of their results, addresses.

Nothing here knows a widget. `open_runs` follows runs while they grow, `jobs` runs and cancels, `processes` computes
planes, `versions` are the keys by which a replaced run is noticed.
"""
