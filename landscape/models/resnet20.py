"""ResNet20 for CIFAR, three basic blocks per stage (FedLAW, App. D.3).

272,474 parameters for (3, 32, 32) and 10 classes, 278,324 for 100, with either normalisation.
"""

from landscape.models._resnet import cifar_factory

build = cifar_factory("resnet20", blocks=3)
