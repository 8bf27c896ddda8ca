"""The site: `make docs` builds it into docs/_build/html, without network."""

from __future__ import annotations

import os
import sys
import warnings
from functools import reduce
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE / "_extensions"))
os.environ.setdefault("MPLBACKEND", "Agg")
# Examples are run by processes of their own, which see this.
os.environ["PYTHONWARNINGS"] = "ignore"
warnings.filterwarnings("ignore", category=UserWarning, message=".*FigureCanvasAgg is non-interactive.*")

import belated  # noqa: E402
from belated.methods.base import Method  # noqa: E402
from belated.models.base import Model  # noqa: E402
from belated.risks.base import Risk  # noqa: E402

project = "belated"
author = "The belated developers"
copyright = author  # noqa: A001 (Sphinx calls it so)
version = release = belated.__version__

extensions = [
    "mathml",
    "method_pictures",
    "myst_parser",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx_click",
    "sphinx_design",
    "sphinx_gallery.gen_gallery",
    "thumbnails",
]
exclude_patterns = ["_build", "_extensions", "pictures", "gallery/sg_execution_times.rst", "sg_execution_times.rst"]
suppress_warnings = ["config.cache"]
nitpicky = False

# Markdown
myst_enable_extensions = ["colon_fence", "dollarmath", "deflist", "attrs_block", "attrs_inline"]
myst_heading_anchors = 3
smartquotes = False  # options and quotes are to be copied as they are
myst_links_external_new_tab = False

# Reference
autosummary_generate = True
autodoc_typehints = "none"
autodoc_default_options = {"members": False}
numpydoc_show_class_members = False
numpydoc_xref_param_type = False
templates_path = ["_templates"]


def own_members(full_name: str) -> list[tuple[str, str]]:
    """The public members of a class that this library wrote and a user calls, each with the directive that shows it.

    What scikit-learn adds is left out, and so is what every method and every model has because an engine asks for it.
    """
    parts = full_name.split(".")
    depth = next(k for k in range(len(parts) - 1, 0, -1) if find_spec(".".join(parts[:k])))
    kind = reduce(getattr, parts[depth:], import_module(".".join(parts[:depth])))
    homes = {name: home for home in reversed(kind.__mro__) for name in vars(home)}
    inner = {name for base in (Method, Model, Risk) if base in kind.__mro__[1:] for name in vars(base)}
    members = []
    for name, home in sorted(homes.items()):
        value = vars(home)[name]
        if (
            name.startswith("_")
            or name in inner
            or name.endswith("_request")
            or not home.__module__.startswith("belated")
        ):
            continue
        if isinstance(value, property) and value.__doc__:
            members.append(("autoproperty", name))
        elif callable(getattr(kind, name)) and getattr(kind, name).__doc__:
            members.append(("automethod", name))
    return members


autosummary_context = {"own_members": own_members}

# Gallery (in the order of _extensions/gallery_order.py): every plot_*.py is run, the others are shown with output that was stored.
sphinx_gallery_conf = {
    "examples_dirs": "../examples/gallery",
    "gallery_dirs": "gallery",
    "filename_pattern": r"/plot_",
    "within_subsection_order": "gallery_order.in_the_order_of_the_gallery",
    "abort_on_example_error": True,
    "download_all_examples": False,
    "remove_config_comments": True,
    "show_memory": False,
    "show_signature": False,
    "plot_gallery": "True",
    "matplotlib_animations": False,
    "copyfile_regex": r".*\.(txt|png)",
    "image_srcset": ["2x"],
    "parallel": 2,
}

# Pages
html_theme = "pydata_sphinx_theme"
html_title = "belated"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_copy_source = False
html_show_sourcelink = False
html_context = {"default_mode": "auto"}  # the colours of the reader's own system
html_sidebars = {
    name: []
    for name in (
        "start",
        "your-data",
        "evaluate",
        "models",
        "large-logs",
        "streaming",
        "theory",
        "benchmarks",
        "extend",
        "pitfalls",
    )
}
html_theme_options = {
    "header_links_before_dropdown": 6,
    "navbar_align": "left",
    "navigation_with_keys": False,
    "show_toc_level": 2,
    "secondary_sidebar_items": ["page-toc"],
    "footer_start": ["copyright"],
    "footer_end": [],
    "pygments_light_style": "a11y-high-contrast-light",
    "pygments_dark_style": "a11y-high-contrast-dark",
}
