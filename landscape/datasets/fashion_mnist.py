"""Fashion-MNIST, 60,000 + 10,000 pieces of clothing, 28x28 grey (Xiao et al. 2017).

The default scaling [0, 1] is that of the IMA and FedLAW papers.
"""

from landscape.datasets._images import loader
from landscape.datasets._source import read_source

SOURCE = read_source("fashion_mnist")
load = loader(SOURCE)
