"""Wide ResNet56-4 for CIFAR, nine basic blocks per stage, four times as wide (FedLAW, App. D.3).

13,628,234 parameters for (3, 32, 32) and 10 classes, with either normalisation. The blocks are those of ResNet56,
normalised after each convolution, not the pre-activation blocks of the Wide ResNet paper.
"""

from landscape.models._resnet import cifar_factory

build = cifar_factory("wrn56_4", blocks=9, wide=4)
