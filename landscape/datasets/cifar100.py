"""CIFAR-100, 50,000 + 10,000 colour photographs of 100 things in 20 coarse classes, 32x32 (Krizhevsky 2009).

A copy of the first 100 + 20 images of each class is accepted too. The default scaling "standard" is that of the
IMA paper; FedLAW and LSS use "half".
"""

from landscape.datasets._images import loader
from landscape.datasets._source import read_source

SOURCE = read_source("cifar100")
load = loader(SOURCE)
