"""Surfaces under light, films over rounds, and films of one round.

`lit_surface` draws a plane in three dimensions, `film` writes frames of such planes, always beside the map.
"""
