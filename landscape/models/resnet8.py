"""ResNet8 for CIFAR, one basic block per stage (FedLAW, App. D.3).

78,042 parameters for (3, 32, 32) and 10 classes, with either normalisation.
"""

from landscape.models._resnet import cifar_factory

build = cifar_factory("resnet8", blocks=1)
