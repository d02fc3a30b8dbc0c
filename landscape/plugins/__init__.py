"""Plug-ins: files of a folder by name, their options, errors for unknown names, and public names of packages.

`folders` finds and reads plug-ins, `option_types` checks their options, `unknown_names` writes the error for a name
that does not exist, and `public_names` imports what a package offers at first use.
"""

from landscape.plugins.folders import constant as constant
from landscape.plugins.folders import describe as describe
from landscape.plugins.folders import load as load
from landscape.plugins.folders import names as names
from landscape.plugins.folders import paragraph as paragraph
from landscape.plugins.folders import recorded_name as recorded_name
from landscape.plugins.folders import require as require
from landscape.plugins.folders import require_derived as require_derived
from landscape.plugins.folders import sentence as sentence
from landscape.plugins.folders import single_class as single_class
from landscape.plugins.folders import source as source
from landscape.plugins.option_types import require_options as require_options
from landscape.plugins.public_names import lazy as lazy
from landscape.plugins.unknown_names import require_known as require_known
from landscape.plugins.unknown_names import unknown as unknown
