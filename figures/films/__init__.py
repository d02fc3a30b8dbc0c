"""Surfaces under light, and films of surfaces and paths over rounds.

`lit_surface` draws a plane in three dimensions, `film` writes frames of such planes, always beside the map.
"""
