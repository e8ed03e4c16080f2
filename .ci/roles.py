"""Shows the roles of the docstrings (``:func:`name```) as code: mkdocstrings reads Markdown, Sphinx reads roles."""

from __future__ import annotations

import re
from typing import Any

import griffe

_ROLE = re.compile(r":(?:func|class|data|meth|mod|attr|exc):`~?([^`]+)`")


class Roles(griffe.Extension):
    """Rewrites each docstring when it has been read."""

    def on_instance(self, *, obj: griffe.Object, **_: Any) -> None:
        if obj.docstring:
            obj.docstring.value = _ROLE.sub(r"`\1`", obj.docstring.value)
