"""USPS, 7,291 + 2,007 handwritten digits from envelopes, 16x16 grey (Hull 1994)."""

from landscape.datasets._images import loader
from landscape.datasets._source import read_source

SOURCE = read_source("usps")
load = loader(SOURCE)
