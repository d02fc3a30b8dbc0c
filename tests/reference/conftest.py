"""The run that most references of this folder look at."""

import pytest
import tiny
from reference.linear_model import FULL


@pytest.fixture(scope="module", params=["samples", "uniform", "one client"])
def run(request, tmp_path_factory):
    """Three rounds of three of four unequal clients, weighed by samples or equally, or of one of them."""
    own = ["clients.per_round=1"] if request.param == "one client" else [f"clients.weighting={request.param}"]
    return tiny.trained(tmp_path_factory.mktemp("full"), *FULL, *own)
