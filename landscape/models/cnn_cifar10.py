"""CNN with two 5x5 convolutions of 64 channels for CIFAR-10 (IMA, Table IV).

conv5(C, 64), conv5(64, 64), each pooled; FC 384, FC 128 (feature), FC classes; ReLU throughout. 772,682 parameters for
(3, 32, 32) and 10 classes. Images have 16x16 pixels or more.
"""

from landscape.models._blocks import Conv, cnn

build = cnn("cnn_cifar10", Conv(64, 5), Conv(64, 5), hidden=(384, 128), least=16)
