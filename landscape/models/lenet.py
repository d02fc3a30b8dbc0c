"""LeNet with two padded 5x5 convolutions for Fashion-MNIST (FedLAW, App. D.3, as coded).

conv5 pad 2 (C, 16), conv5 pad 2 (16, 32), each pooled, ReLU (feature); FC classes. 28,938 parameters for (1, 28, 28)
and 10 classes. Images have 4x4 pixels or more.
"""

from landscape.models._blocks import Conv, cnn

build = cnn("lenet", Conv(16, 5, padding=2), Conv(32, 5, padding=2), least=4)
