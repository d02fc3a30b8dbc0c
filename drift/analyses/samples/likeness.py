"""Groups of like samples: Ward clustering inside each class, all classes cut at one height."""

from dataclasses import dataclass

import numpy as np
from scipy.cluster.hierarchy import fcluster, linkage
from scipy.linalg import eigh

COMPONENTS = 20
"""Principal components in which samples are compared."""

CLUSTERED = 2000
"""Samples of a class that are clustered, evenly spaced; the others join the nearest group."""


@dataclass(frozen=True)
class LikeGroups:
    """Groups of samples.

    Args:
        group: Group of every sample, shape (n,), -1 for samples of classes in which none is marked.
        distance: Distance of every sample to the centre of its group, shape (n,), NaN without a group.
    """

    group: np.ndarray
    distance: np.ndarray


def principal_components(features: np.ndarray) -> np.ndarray:
    """Principal components (n, c) of features (n, f), c = 20 at most; missing and infinite features count as 0."""
    flat = np.nan_to_num(features.reshape(len(features), -1).astype(np.float32), posinf=0.0, neginf=0.0)
    count = min(COMPONENTS, *flat.shape)
    if flat.shape[1] <= count or len(flat) <= count:
        return (flat - flat.mean(0)).astype(np.float64)
    centred = flat - flat.mean(0, dtype=np.float64)
    few = len(flat) < flat.shape[1]
    gram = centred @ centred.T if few else centred.T @ centred
    values, vectors = eigh(gram, subset_by_index=(len(gram) - count, len(gram) - 1))  # of an SVD, a tenth of the time
    components: np.ndarray = vectors * np.sqrt(values.clip(0)) if few else centred @ vectors
    return components[:, ::-1]


def like_groups(features: np.ndarray, labels: np.ndarray, marked: np.ndarray, count: int) -> LikeGroups:
    """Groups of the marked samples that have one class and are alike, and the group nearest to each other sample.

    In each class the marked samples are clustered by Ward's method; all trees are cut at the height that leaves `count`
    groups, at least one per class. Samples that are not marked, the context, join the nearest group of their class.

    Args:
        features: Shape (n, c), compared by Euclidean distance.
        labels: Class of each sample, shape (n,).
        marked: Which samples are clustered, bool, shape (n,).
        count: Number of groups.
    """
    rows_of = {int(label): _spread(np.flatnonzero(marked & (labels == label))) for label in np.unique(labels[marked])}
    trees = {label: linkage(features[rows], "ward") for label, rows in rows_of.items() if len(rows) > 1}
    heights = np.sort(np.concatenate([tree[:, 2] for tree in trees.values()])) if trees else np.zeros(0)
    merges = len(heights) + len(rows_of) - max(count, len(rows_of))
    cut = heights[merges - 1] if merges > 0 else -1.0
    group, distance = np.full(len(labels), -1), np.full(len(labels), np.nan)
    number = 0
    for label, rows in rows_of.items():
        clusters = fcluster(trees[label], cut, "distance") - 1 if label in trees else np.zeros(1, int)
        centres = np.stack([features[rows[clusters == cluster]].mean(0) for cluster in range(clusters.max() + 1)])
        members = np.flatnonzero(labels == label)
        lengths = np.linalg.norm(features[members][:, None] - centres, axis=2)
        nearest = lengths.argmin(1)
        nearest[np.searchsorted(members, rows)] = clusters
        group[members] = number + nearest
        distance[members] = lengths[np.arange(len(members)), nearest]
        number += len(centres)
    return LikeGroups(group, distance)


def _spread(rows: np.ndarray) -> np.ndarray:
    """At most CLUSTERED of some rows, evenly spaced."""
    if len(rows) <= CLUSTERED:
        return rows
    return rows[np.linspace(0, len(rows) - 1, CLUSTERED).round().astype(int)]
