"""Numbers about single models: norms, sharpness in a ball, robustness, similarity, ensembles, cost.

Each file is one family of measures.
"""

from landscape.results import pictures

pictures.register()  # `.plot()` on the datasets
