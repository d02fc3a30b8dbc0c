"""SimpleCNN, three 3x3 convolutions for CIFAR (FedLAW, App. D.3).

conv3(C, 32) pooled, conv3(32, 64) pooled, conv3(64, 64); FC 64 (feature), FC classes; ReLU throughout. 122,570
parameters for (3, 32, 32) and 10 classes, 128,420 for 100. The text mentions one pool; its 64x4x4 features need two.
Images have 18x18 pixels or more.
"""

from landscape.models._blocks import Conv, cnn

build = cnn("simple_cnn", Conv(32, 3), Conv(64, 3), Conv(64, 3, pool=False), hidden=(64,), least=18)
