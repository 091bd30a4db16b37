"""Sphinx configuration."""

import logging

import bayes_lcs

project = "bayes_lcs"
author = "The bayes_lcs developers"
copyright = "The bayes_lcs developers"
version = release = bayes_lcs.__version__

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.mathjax",
    "sphinx.ext.napoleon",
    "sphinx.ext.viewcode",
    "sphinx_gallery.gen_gallery",
]
source_suffix = {".md": "markdown", ".rst": "restructuredtext"}
exclude_patterns = ["_build", "tutorials"]
nitpicky = False

myst_enable_extensions = ["colon_fence", "deflist", "dollarmath"]
myst_heading_anchors = 3

autosummary_generate = False
autodoc_member_order = "bysource"
autodoc_typehints = "description"
napoleon_google_docstring = False
napoleon_numpy_docstring = True

sphinx_gallery_conf = {
    "examples_dirs": "tutorials",
    "gallery_dirs": "auto_tutorials",
    "within_subsection_order": "FileNameSortKey",
    # Every tutorial runs at every build, also if only the package has changed; one that fails
    # ends the build.
    "run_stale_examples": True,
    "abort_on_example_error": True,
    "only_warn_on_example_error": False,
    "plot_gallery": "True",
    # A value at the end of a block is shown only if it is printed: no reprs of Axes.
    "capture_repr": (),
    "download_all_examples": False,
    "show_signature": False,
    "backreferences_dir": None,
    "thumbnail_size": (320, 224),
    "min_reported_time": 1e9,
}

# Libraries that tell the log which back ends they looked for.
for chatty in ("jax", "arviz"):
    logging.getLogger(chatty).setLevel(logging.WARNING)

html_theme = "furo"
html_title = f"bayes_lcs {release}"
html_static_path = ["_static"]
html_css_files = ["pages.css"]
