"""MNIST, 60,000 + 10,000 handwritten digits, 28x28 grey (LeCun et al. 1998)."""

from landscape.datasets._images import loader
from landscape.datasets._source import read_source

SOURCE = read_source("mnist")
load = loader(SOURCE)
