"""LeNet5 with dropout for FEMNIST (FedEve, author's repository)."""

from torch import nn

from landscape.models._blocks import Classifier, check_image, dense, flat_size, pooled


def build(shape: tuple[int, ...], classes: int, *, dropout: float = 0.5) -> nn.Module:
    """conv3(C, 6), conv3(6, 10), each pooled, ReLU; dropout; FC 100 ReLU; dropout (feature); FC classes.

    31,972 parameters for (1, 28, 28) and 62 classes.

    Args:
        shape, classes: Of one image, and number of outputs.
        dropout: Probability of dropping a value, in training mode only; 0.5 in the repository.

    Raises:
        ValueError: If an image is smaller than 10x10, or dropout is no probability below 1.
    """
    check_image("lenet5", shape, 10)
    if not 0 <= dropout < 1:
        raise ValueError(f"dropout is {dropout}; lenet5 takes 0 <= dropout < 1.")
    layers = nn.Sequential(*pooled(shape[0], 6, 3), *pooled(6, 10, 3), nn.Flatten())
    size = flat_size(layers, shape)
    layers.extend([nn.Dropout(dropout), *dense(size, 100), nn.Dropout(dropout)])
    return Classifier(layers, nn.Linear(100, classes))
