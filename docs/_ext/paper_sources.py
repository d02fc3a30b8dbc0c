"""What each figure of the four papers is drawn from here, by paper and item; data alone."""

from __future__ import annotations

from _ext.paper_runs import Source

_GWS = {"methods": ["fedavg", "fedlaw-gws"]}
_ONE_OF = {"method": "fedlaw"}

SOURCES: dict[tuple[str, str], Source] = {
    ("ima", "Fig. 1"): Source(
        recorded=("ima-table1-fmnist-shards2",), stored="planes-clients", options={"method": "fedavg"}
    ),
    ("ima", "Fig. 2"): Source(("decay",)),
    ("ima", "Fig. 3"): Source(("decay",)),
    ("ima", "Fig. 4"): Source(("decay",)),
    ("ima", "Fig. 5b"): Source(
        recorded=("ima-table1-fmnist-shards2",), stored="lines-globals", options={"method": "fedavg"}
    ),
    ("ima", "Fig. 5c"): Source(
        recorded=("ima-table1-fmnist-shards2",), stored="lines-fma-ima", options={"method": "fedavg"}
    ),
    ("ima", "Fig. 6a"): Source(("ima-6a",)),
    ("ima", "Fig. 6b"): Source(("ima-6b",)),
    ("ima", "Fig. 6c"): Source(("ima-6c",)),
    ("ima", "Fig. 7a"): Source(("ima-7a",)),
    ("ima", "Fig. 7b"): Source(("ima-7b",)),
    ("ima", "Fig. 7c"): Source(recorded=("ima-table1-fmnist-shards2",), stored="lines-fma-ima"),
    ("ima", "Fig. 8"): Source(("methods", "silo"), options={"methods": ["fedavg"]}, one_seed=True),
    ("ima", "Fig. 9"): Source(("methods", "silo"), options={"methods": ["fedavg"]}, one_seed=True),
    ("ima", "Fig. 10"): Source(("methods", "data"), options={"methods": ["fedavg"]}, one_seed=True),
    ("fedlaw", "Fig. 1"): Source(("shrink",)),
    ("fedlaw", "Fig. 2"): Source(("epochs-gws", "gws-iid")),
    ("fedlaw", "Fig. 3"): Source(("methods", "gws"), options={"methods": ["fedlaw-gws"]}),
    ("fedlaw", "Fig. 4a"): Source(("methods", "gws"), options=_GWS),
    ("fedlaw", "Fig. 4b"): Source(("methods", "gws"), options=_GWS),
    ("fedlaw", "Fig. 4c"): Source(("methods", "gws"), options=_GWS),
    ("fedlaw", "Fig. 5a"): Source(("hybrid",)),
    ("fedlaw", "Fig. 5b"): Source(("hybrid-weights",)),
    ("fedlaw", "Fig. 5c"): Source(
        recorded=("fedlaw-table3-cifar10-dir01",), stored="weights-cifar10", options={"method": "fedlaw"}
    ),
    ("fedlaw", "Fig. 6"): Source(("hybrid",)),
    ("fedlaw", "Fig. 7a"): Source(("partial",)),
    ("fedlaw", "Fig. 7b"): Source(("partial",)),
    ("fedlaw", "Fig. 8a"): Source(("fedlaw-8a",)),
    ("fedlaw", "Fig. 8b"): Source(("fedlaw-8b",)),
    ("fedlaw", "Fig. 9"): Source(("gws-concentrations",)),
    ("fedlaw", "Fig. 10"): Source(("methods", "gws"), options={**_GWS, "rounds": 5, "split": "train"}),
    ("fedlaw", "Fig. 11"): Source(
        ("epochs-gws", "gws-iid", "gws-concentrations", "gws-seeds"), options={"methods": ["fedlaw-gws"]}
    ),
    ("fedlaw", "Fig. 12"): Source(("three",)),
    ("fedlaw", "Fig. 13"): Source(("fedlaw-13",), options={"methods": ["fedavg"]}),
    ("fedlaw", "Fig. 14"): Source(("methods",), options=_ONE_OF, one_seed=True),
    ("fedlaw", "Figs. 15-17"): Source(("fedlaw-15",)),
    ("lss", "Figs. 3a, 3b"): Source(("methods",), options={"methods": ["fedavg", "lss"]}),
    ("lss", "Figs. 3c, 3d"): Source(("domains",), options={"methods": ["fedavg", "lss"]}),
    ("lss", "Fig. 4"): Source(lacks="a ViT-B/16 needs a GPU and weights from a hub"),
    ("lss", "Fig. 5a"): Source(("lss-5a",)),
    ("lss", "Fig. 5b"): Source(("lss-5b",)),
    ("lss", "Fig. 6"): Source(("pools",)),
    ("lss", "Fig. 9, CIFAR-10"): Source(("methods", "prox"), options={"methods": ["fedprox", "lss"]}),
    ("lss", "Fig. 9, Digit-5"): Source(("domains",), options={"methods": ["fedprox", "lss"]}),
    ("fedeve", "Fig. 3a"): Source(("fedeve-3a",)),
    ("fedeve", "Fig. 3b"): Source(("fedeve-3b",), lacks="the gallery has recorded runs, at 0.01 alone"),
    ("fedeve", "Fig. 4"): Source(recorded=("fedeve-fig4-mnist",)),
    ("fedeve", "Fig. 5"): Source(("fedeve-5",)),
    ("fedeve", "Fig. 6"): Source(("fedeve-6",)),
}

TABLES: dict[tuple[str, str], Source] = {
    ("ima", "Table I"): Source(
        recorded=("ima-table1-fmnist-shards2", "ima-table1-fmnist-dir01", "ima-table1-fmnist-shards2-bases")
    ),
    ("fedlaw", "Table 1"): Source(recorded=("fedlaw-table1-cifar10-dir1",), options={"methods": ["shrink"]}),
    ("fedlaw", "Table 3"): Source(recorded=("fedlaw-table3-cifar10-dir01",)),
    ("lss", "Table 1"): Source(recorded=("lss-table1-cifar10",)),
    ("lss", "Table 6"): Source(recorded=("lss-table1-cifar10",)),
    ("fedeve", "Table 1, FEMNIST"): Source(
        recorded=("fedeve-table1-mnist-dir1", "fedeve-table1-mnist-dir01", "fedeve-table1-mnist-dir001")
    ),
}
"""What tables are drawn from; other tables are not drawn."""
