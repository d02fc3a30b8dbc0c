"""Digits of three domains, MNIST, USPS and MNIST-M, of one size (part of Digit-Five, Peng et al. 2019).

The options and their defaults are those of `digit5`.
"""

from landscape.datasets import _union

DOMAINS = ("mnist", "usps", "mnist_m")

load = _union.loader("digits3", DOMAINS)
