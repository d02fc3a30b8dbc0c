"""SVHN, 73,257 + 26,032 house numbers cropped to one digit, 32x32 colour (Netzer et al. 2011).

The cropped digits, without the extra ones. The default scaling "half" is that of the IMA paper; "standard" takes mean
and std of the training images.
"""

from landscape.datasets._images import loader
from landscape.datasets._source import read_source

SOURCE = read_source("svhn")
load = loader(SOURCE)
