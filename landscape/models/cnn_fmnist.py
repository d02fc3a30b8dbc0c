"""CNN with two 5x5 convolutions of 32 channels for Fashion-MNIST (IMA, Table IV, as coded).

conv5(C, 32), conv5(32, 32), each pooled; FC 384, FC 128 (feature), FC classes; ReLU throughout. 274,026 parameters for
(1, 28, 28) and 10 classes. The table prints the second convolution as (1, 32); it is (32, 32) in the code. Images have
16x16 pixels or more.
"""

from landscape.models._blocks import Conv, cnn

build = cnn("cnn_fmnist", Conv(32, 5), Conv(32, 5), hidden=(384, 128), least=16)
