"""Interactive figures (plotly), each a `go.Figure` for a notebook or the report; they need no network.

Files are named after their figures; `look`, `slider`, `words` and the two files of traces are their shared parts.
"""
