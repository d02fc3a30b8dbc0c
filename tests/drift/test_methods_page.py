"""docs/methods.md is what its command writes, and is complete."""

import json

from benchmarks._methods_page import page
from benchmarks.methods import NUMBERS, PAGE
from drift import method as methods


def test_every_option_of_every_method_says_what_it_means():
    for name in methods.names():
        for option, field in methods.load(name).model_fields.items():
            assert field.description, f"{name}.{option}"


def test_the_page_is_what_the_command_writes():
    numbers = json.loads(NUMBERS.read_text())
    assert set(numbers["methods"]) <= set(methods.names())
    assert all(len(one["accuracy"]) == len(numbers["seeds"]) >= 2 for one in numbers["methods"].values())
    assert page(numbers) == PAGE.read_text(), "run python -m benchmarks.methods"
