"""Files by their content: SHA-256, and the one message for a file that is not the pinned one."""

from __future__ import annotations

import hashlib
import shlex
import sys
from pathlib import Path
from typing import TypeVar

from geco_ray.errors import UserError

E = TypeVar("E", bound=UserError)


def sha256_of(path: Path) -> str:
    """The SHA-256 of a file, in lower-case hex, read in pieces."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def removal_command(path: Path) -> str:
    """The command line that removes ``path`` on this platform."""
    return f'del "{path}"' if sys.platform == "win32" else f"rm {shlex.quote(str(path))}"


def not_the_pinned_file(path: Path, *, found: str, expected: str, then: str, kind: type[E]) -> E:
    """The error for a file with another SHA-256 than the pinned one; ``then`` is what to do after removing it."""
    return kind(
        "the file has another SHA-256 than the pinned one",
        where=str(path),
        found=found,
        expected=expected,
        remedy=f"Remove it with `{removal_command(path)}`, {then}.",
    )
