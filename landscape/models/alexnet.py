"""AlexNet for CIFAR, a substitute: FedLAW names one and specifies none (this project; FedLAW, App. D.3).

conv3 pad 1 (C, 64), (64, 192), (192, 384), (384, 256), (256, 256), pooled after 1, 2 and 5; FC 1024, FC 512.
ReLU throughout; the feature is the last of the two. 6,976,842 parameters for (3, 32, 32) and 10 classes,
7,023,012 for 100. Neither the paper nor its code gives the layers (papers.md 5.2): do not compare its AlexNet row
with this network's numbers. Images have 8x8 pixels or more.
"""

from landscape.models._blocks import Conv, cnn

build = cnn(
    "alexnet",
    *(Conv(64, 3, 1), Conv(192, 3, 1)),
    *(Conv(384, 3, 1, pool=False), Conv(256, 3, 1, pool=False), Conv(256, 3, 1)),
    hidden=(1024, 512),
    least=8,
)
