"""Parts of drawn figures that fill given axes: curves, surfaces, triangles, spectra, weights.

The gallery composes them; nothing here opens runs.
"""
