"""Short words of the questions of docs/findings.md: the quantity, and what it is of; captions of its pictures.

The words of `drift/claims/cross.toml` are part of the digests of the plan, so they stay as they are; tables have these.
"""

from __future__ import annotations

QUANTITIES: dict[str, dict[str, str]] = {
    "update change": {
        "cross-ima-change": "IMA over FedAvg",
        "cross-alone-change": "averaging alone over FedAvg",
        "cross-late-change": "late rates alone over FedAvg",
    },
    "client drift by equation 13": {
        "cross-ima-client": "IMA over FedAvg",
        "cross-alone-client": "averaging alone over FedAvg",
        "cross-late-client": "late rates alone over FedAvg",
    },
    "mean cosine of the clients": {
        "cross-ima-coherence": "IMA minus FedAvg",
        "cross-alone-coherence": "averaging alone minus FedAvg",
        "cross-late-coherence": "late rates alone minus FedAvg",
    },
    "Kalman gain of the updates": {
        "cross-ima-gain": "IMA minus FedAvg",
        "cross-alone-gain": "averaging alone minus FedAvg",
        "cross-late-gain": "late rates alone minus FedAvg",
    },
    "accuracy": {
        "cross-ima-accuracy": "IMA minus FedAvg",
        "cross-alone-accuracy": "averaging alone minus FedAvg",
        "cross-late-accuracy": "late rates alone minus FedAvg",
        "cross-fedeve-accuracy": "FedEve minus FedAvg",
        "cross-ima-scaffold": "IMA minus SCAFFOLD",
        "cross-fedeve-with-ima": "FedEve with IMA minus FedEve",
    },
    "exact sampling drift": {
        "cross-ima-sampling": "IMA over FedAvg",
        "cross-alone-sampling": "averaging alone over FedAvg",
        "cross-late-sampling": "late rates alone over FedAvg",
        "cross-fedeve-sampling": "FedEve with IMA over FedEve",
    },
    "update change (equation 13)": {
        "cross-ima-sampling-estimate": "IMA over FedAvg",
        "cross-alone-sampling-estimate": "averaging alone over FedAvg",
        "cross-late-sampling-estimate": "late rates alone over FedAvg",
    },
    "update change over exact sampling drift": {
        "cross-ima-change-over-sampling": "IMA over FedAvg",
        "cross-alone-change-over-sampling": "averaging alone over FedAvg",
        "cross-late-change-over-sampling": "late rates alone over FedAvg",
    },
    "exact client drift": {
        "cross-ima-client-exact": "IMA over FedAvg",
        "cross-alone-client-exact": "averaging alone over FedAvg",
        "cross-late-client-exact": "late rates alone over FedAvg",
        "cross-fedeve-client-exact": "FedEve with IMA over FedEve",
    },
    "part of the squared sampling drift that the next start undoes": {
        "cross-carried-fedavg": "FedAvg",
        "cross-carried-alone": "averaging alone",
    },
    "FedEve's gain": {
        "cross-fedeve-gain": "FedEve with IMA minus FedEve",
    },
    "update change from FedEve's prediction": {
        "cross-fedeve-change": "FedEve with IMA over FedEve",
    },
    "update change from FedEve's prediction over exact sampling drift": {
        "cross-fedeve-estimate-alone": "FedEve",
        "cross-fedeve-estimate-ima": "FedEve with IMA",
    },
    "FedEve's margin over FedAvg": {
        "cross-margin-changed": "with IMA on both minus without",
    },
    "loss gained by a window of five": {
        "cross-window-late": "second half of training minus first",
        "cross-gain-coherence": "rank correlation with the mean cosine over rounds",
    },
    "share in the ten sharpest directions minus that of random ones": {
        "cross-client-sharp": "client drift",
        "cross-sampling-sharp": "exact sampling drift",
        "cross-change-sharp": "update change",
    },
    "second-order cost minus the measured one, over the measured one": {
        "cross-client-quadratic": "client drift",
        "cross-sampling-quadratic": "exact sampling drift",
        "cross-change-quadratic": "update change",
    },
    "cost of a round: FedAvg's loss minus that without": {
        "cross-cost-sampling": "sampling drift",
        "cross-cost-local": "local training beyond the first gradient",
    },
    "equation 13 over the exact variance": {
        "cross-estimate-sampling": "sampling drift",
        "cross-estimate-client": "client drift, over the expectation for m of K clients",
    },
    "FedLAW's learned gamma": {
        "cross-gamma-drift": "rank correlation with client-drift variance over rounds",
    },
}
"""Quantity -> question -> what it is of."""

WORDS = {name: (quantity, of) for quantity, names in QUANTITIES.items() for name, of in names.items()}
"""Question -> (quantity, what it is of); a question that is not here has its own statement and effect."""

CAPTIONS = {
    "averaging": "Update change (left) and client drift by equation 13 (right), Fashion-MNIST. Geometric means over "
    "seeds, bands are their range.",
    "loss": "Share of each drift in the ten sharpest directions (left), and second-order against measured cost, a "
    "point per round and seed (right), Fashion-MNIST.",
    "exact": "Loss that each part of a round costs (left), and estimates over exact variances, that of client drift "
    "over its expectation (right), Fashion-MNIST. Dots are seeds, bars the 95 % interval of their mean.",
}
"""Picture of docs/findings.md -> its caption in the manuscript."""
