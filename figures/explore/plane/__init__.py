"""The plane and the triangle of weights: which models, which points, their values, maps, levels and panels.

`places` are planes as questions, `points` and `surveys` their values, `maps` and `triangles` their pictures.
"""
