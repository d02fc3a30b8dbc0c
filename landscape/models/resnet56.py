"""ResNet56 for CIFAR, nine basic blocks per stage (FedLAW, App. D.3).

855,770 parameters for (3, 32, 32) and 10 classes, with either normalisation.
"""

from landscape.models._resnet import cifar_factory

build = cifar_factory("resnet56", blocks=9)
