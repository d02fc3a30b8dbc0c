"""Surfaces under light, films over rounds, and films of one round.

`lit_surface` draws a plane in three dimensions, `film` and `film_round` move models over it.
"""
