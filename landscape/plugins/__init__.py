"""Plug-ins: files of a folder by name, their options, errors for unknown names, and public names of packages.

`folders` finds and reads plug-ins, `option_types` checks their options, `unknown_names` writes the error for a name
that does not exist, and `public_names` imports what a package offers at first use.
"""

from landscape.plugins.folders import (
    constant,
    describe,
    load,
    names,
    paragraph,
    recorded_name,
    require,
    require_derived,
    sentence,
    single_class,
    source,
)
from landscape.plugins.option_types import require_options
from landscape.plugins.public_names import lazy
from landscape.plugins.unknown_names import require_known, unknown

__all__ = [
    "constant",
    "describe",
    "lazy",
    "load",
    "names",
    "paragraph",
    "recorded_name",
    "require",
    "require_derived",
    "require_known",
    "require_options",
    "sentence",
    "single_class",
    "source",
    "unknown",
]
