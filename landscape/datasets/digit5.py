"""Digit-Five: digits from MNIST, SVHN, USPS, SynthDigits and MNIST-M with domain labels (Peng et al. 2019)."""

from landscape.datasets import _union

DOMAINS = ("mnist", "svhn", "usps", "synthdigits", "mnist_m")

load = _union.loader("digit5", DOMAINS)
