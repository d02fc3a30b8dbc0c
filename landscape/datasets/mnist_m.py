"""MNIST-M, 59,001 + 9,001 MNIST digits blended with photographs, 32x32 colour (Ganin and Lempitsky 2015).

A copy of the first 5,000 + 1,000 images is accepted too. The default scaling "half" is that of the IMA paper.
"""

from landscape.datasets._images import loader
from landscape.datasets._source import read_source

SOURCE = read_source("mnist_m")
load = loader(SOURCE)
