"""Sphinx configuration. The build needs no network."""

import inspect

from skdisent import __version__

project = "skdisent"
author = "The skdisent developers"
copyright = f"2026, {author}"
version = release = __version__

extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.mathjax",
    "numpydoc",
    "sphinx_gallery.gen_gallery",
]
exclude_patterns = ["_build"]
templates_path = ["_templates"]
default_role = "literal"

# The class pages list the methods (_templates/autosummary/class.rst).
numpydoc_show_class_members = False

sphinx_gallery_conf = {
    "examples_dirs": "../examples",
    "gallery_dirs": "auto_examples",
    "filename_pattern": r"/plot_",
    "ignore_pattern": r"^(?!plot_)",
    "backreferences_dir": "generated/backreferences",
    "doc_module": ("skdisent",),
    "download_all_examples": False,
    "show_memory": False,
    "show_signature": False,
}

html_theme = "pydata_sphinx_theme"
html_title = f"skdisent {version}"
html_show_sourcelink = False
html_copy_source = False
html_theme_options = {
    "navbar_end": ["theme-switcher"],
    "show_prev_next": False,
    "show_toc_level": 2,
}


def skip_foreign_member(app, what, name, obj, skip, options):
    """Leave out what a class inherits from another package.

    The docstrings of scikit-learn refer to pages of its own documentation.
    """
    function = inspect.unwrap(obj.fget if isinstance(obj, property) else obj)
    module = getattr(function, "__module__", None) or "builtins"
    if callable(function) and module.partition(".")[0] != "skdisent":
        return True
    return None


def setup(app):
    app.connect("autodoc-skip-member", skip_foreign_member)
