"""How the documentation is built: `make docs`, without a network, warnings are errors."""

import shutil
import sys
import tomllib
from pathlib import Path

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE.parent), str(HERE)]

from _ext import other_docs  # noqa: E402 - after the path is set

NOTEBOOKS = HERE / "notebooks"  # Sphinx reads what lies below this folder; git ignores the copies
NOTEBOOKS.mkdir(exist_ok=True)
for path in sorted((HERE.parent / "notebooks").glob("*.ipynb")):
    shutil.copy2(path, NOTEBOOKS / path.name)

project = "fedscape"
author = "the fedscape authors"
copyright = author
language = "en"
nitpicky = False
exclude_patterns = ["_*", "results"]

extensions = [
    "myst_nb",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "sphinx.ext.intersphinx",
    "sphinx.ext.viewcode",
    "sphinx_copybutton",
    "_ext.formulas",
    "_ext.methods_page",
    "_ext.public",
    "_ext.pictures",
]
nb_execution_mode = "off"
myst_heading_anchors = 3
myst_enable_extensions = ["dollarmath", "attrs_inline"]
html_math_renderer = "mathml"
highlight_language = "none"
smartquotes_action = "D"  # dashes of the API pages; quotes stay as they are typed

default_role = "code"
autodoc_member_order = "bysource"
autodoc_typehints_format = "short"
autodoc_preserve_defaults = True
napoleon_google_docstring = True
napoleon_numpy_docstring = False
napoleon_use_rtype = False
maximum_signature_line_length = 88
add_module_names = False
toc_object_entries_show_parents = "hide"

intersphinx_mapping = other_docs.written(HERE / "api" / "objects")

pygments_dark_style = "github-dark"
html_theme = "furo"
described = tomllib.loads((HERE.parent / "pyproject.toml").read_text(encoding="utf-8"))["project"]
release = described["version"]
repository = described.get("urls", {}).get("Repository", "")
html_theme_options = {"source_directory": "docs/", "source_branch": "main"}
if repository:  # Furo links each page to its source there
    html_theme_options["source_repository"] = repository
html_title = f"fedscape {release}"
html_static_path = ["_static"]
html_css_files = ["docs.css"]
html_show_sphinx = False
html_show_copyright = False
html_copy_source = False
