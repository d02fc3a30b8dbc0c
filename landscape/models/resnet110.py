"""ResNet110 for CIFAR, eighteen basic blocks per stage (FedLAW, App. D.3).

1,730,714 parameters for (3, 32, 32) and 10 classes, with either normalisation.
"""

from landscape.models._resnet import cifar_factory

build = cifar_factory("resnet110", blocks=18)
