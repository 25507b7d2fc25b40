"""Sphinx's settings: `make docs` builds the site, with warnings as errors."""

from __future__ import annotations

import sys
from pathlib import Path

import pytensor_fuse

sys.path.insert(0, str(Path(__file__).parent / "_extensions"))

project = "pytensor-fuse"
author = "the pytensor-fuse developers"
copyright = author
release = version = pytensor_fuse.__version__

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "numpydoc",
    "accelerators",
    "public_api",
]
source_suffix = {".md": "markdown", ".rst": "restructuredtext"}
exclude_patterns = ["_build", "_extensions", "_static"]

# All links to pages and names must resolve; names of other projects are not looked up, because
# the site is built without a network.
nitpicky = True
nitpick_ignore_regex = [
    ("py:.*", r"(pytensor|numpy|np|os|collections|typing|types|datetime|pathlib)(\..*)?"),
]
# The same anchors as on GitHub, so that links between pages work there, too.
myst_heading_anchors = 4

# Single backticks in docstrings are names.
default_role = "py:obj"

# Constructors are private: functions of the package make the objects.
autodoc_class_signature = "separated"
autodoc_typehints = "signature"
autodoc_typehints_format = "short"
python_use_unqualified_type_names = True
python_maximum_signature_line_length = 80
autodoc_member_order = "bysource"
autodoc_default_options = {"members": True, "exclude-members": "__init__"}
# The docstring of a class documents its attributes.
numpydoc_show_class_members = False
numpydoc_class_members_toctree = False
numpydoc_attributes_as_param_list = True

html_theme = "furo"
html_title = f"pytensor-fuse {release}"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_show_sourcelink = False
html_copy_source = False
html_theme_options = {
    "source_repository": "https://github.com/pytensor-fuse/pytensor-fuse/",
    "source_branch": "main",
    "source_directory": "docs/",
    "footer_icons": [],
}
pygments_style = "tango"
pygments_dark_style = "github-dark"
