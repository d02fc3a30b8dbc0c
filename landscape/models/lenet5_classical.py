"""LeNet5 with its classical layer sizes and ReLU (LeCun et al. 1998; named by the FedEve paper).

conv5 pad 2 (C, 6), conv5(6, 16), each pooled; FC 120, FC 84 (feature), FC classes; ReLU throughout. 66,126 parameters
for (1, 28, 28) and 62 classes, 61,706 for 10. The FedEve author's repository has another one: `lenet5`. Images have
12x12 pixels or more.
"""

from landscape.models._blocks import Conv, cnn

build = cnn("lenet5_classical", Conv(6, 5, padding=2), Conv(16, 5), hidden=(120, 84), least=12)
