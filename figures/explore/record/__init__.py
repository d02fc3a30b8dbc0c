"""What the record of runs shows: tables of runs, curves over rounds, drift, layers, samples, the diagnosis.

`series` are numbers over rounds by group, `line_figure` draws them, of long curves fewer points.
"""
