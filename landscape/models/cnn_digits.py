"""Small CNN with two 3x3 convolutions for 8x8 digits (this project).

conv3 pad 1 (C, 16), conv3 pad 1 (16, 32), each pooled; FC 64 (feature), FC classes; ReLU throughout. 13,706 parameters
for (1, 8, 8) and 10 classes. Images have 4x4 pixels or more.
"""

from landscape.models._blocks import Conv, cnn

build = cnn("cnn_digits", Conv(16, 3, padding=1), Conv(32, 3, padding=1), hidden=(64,), least=4)
