"""SynthDigits, 479,400 + 9,553 digits rendered in Windows fonts, 32x32 colour (Ganin and Lempitsky 2015).

Not on the hub. The 25,000 + 9,000 images of Digit-Five (Peng et al. 2019) are accepted too. The default scaling "half"
is that of the IMA paper.
"""

from landscape.datasets._images import loader
from landscape.datasets._source import read_source

SOURCE = read_source("synthdigits")
load = loader(SOURCE)
