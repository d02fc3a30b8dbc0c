"""CNN with two 3x3 convolutions and one pool for FEMNIST (FedEve, the author's current default).

conv3(C, 32), conv3(32, 64) pooled; FC 128 (feature), FC classes; ReLU throughout. 1,206,590 parameters for (1, 28, 28)
and 62 classes. Images have 6x6 pixels or more.
"""

from landscape.models._blocks import Conv, cnn

build = cnn("cnn_femnist", Conv(32, 3, pool=False), Conv(64, 3), hidden=(128,), least=6)
