"""The explorer: linked views of runs in a browser or a notebook cell, made with Panel (extra `explore`).

work     open runs, jobs, processes, addresses; knows no widget
shell    the page around the views, the server, the notebook cell
plane    planes and triangles: points, values, maps, panels
record   tables of runs, curves over rounds, drift, samples
views    the views, one per file

A room imports rooms above it in this list.
"""
