"""CIFAR-10, 50,000 + 10,000 colour photographs of ten things, 32x32 (Krizhevsky 2009).

The default scaling "standard" is that of the IMA paper; FedLAW and LSS use "half".
"""

from landscape.datasets._images import loader
from landscape.datasets._source import read_source

SOURCE = read_source("cifar10")
load = loader(SOURCE)
