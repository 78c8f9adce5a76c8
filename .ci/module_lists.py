"""For the API reference: the list of modules in a package's docstring becomes a list on its page.

mkdocs.yml names this file as an extension of griffe, which reads the sources for mkdocstrings.
"""

import re
from typing import Any

import griffe

__all__ = ["ModuleLists"]

_ENTRY = re.compile(r"^(?P<name>[\w*]+(?:\.py|/))\s{2,}(?P<phrase>.*)$", re.MULTILINE)


class ModuleLists(griffe.Extension):
    """Rewrites lines such as `mask.py   the value and its digest`."""

    def on_module(self, *, mod: griffe.Module, **_: Any) -> None:
        """Rewrite the docstring of a module."""
        if mod.docstring is not None:
            mod.docstring.value = _ENTRY.sub(r"- `\g<name>`: \g<phrase>", mod.docstring.value)
