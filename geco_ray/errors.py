"""Errors that a user can put right: one clear sentence with the place, what was found and the remedy.

Anything that is not a :class:`GecoRayError` is a bug of ours and is shown with its traceback.
"""

from __future__ import annotations

import difflib
import reprlib
from collections.abc import Iterable
from typing import Any

_LONGEST_FOUND = 200


class GecoRayError(Exception):
    """Base of all errors that end a command with a message instead of a traceback."""

    exit_code = 1


class GecoRayWarning(UserWarning):
    """Something that a user should know and that stops nothing; the command line prints it as one line."""


class UserError(GecoRayError):
    """Bad input: a grid, a name, a file. Exit code 2; nothing has been written when it is raised.

    Args:
        what: the fault, as one sentence without a full stop.
        where: file, line or key, as the user knows it.
        found: what stood there.
        expected: what should have stood there.
        remedy: what to do about it.
    """

    exit_code = 2

    def __init__(
        self,
        what: str,
        *,
        where: str | None = None,
        found: object = None,
        expected: str | None = None,
        remedy: str | None = None,
    ) -> None:
        self.what, self.where, self.found, self.expected, self.remedy = what, where, found, expected, remedy
        head = f"{where}: {what}" if where else what
        details = []
        if found is not None:
            details.append(f"found {reprlib.repr(found) if len(repr(found)) > _LONGEST_FOUND else repr(found)}")
        if expected is not None:
            details.append(f"expected {expected}")
        if details:
            head += f" ({', '.join(details)})"
        super().__init__(f"{head}. {remedy}" if remedy else f"{head}.")

    def __reduce__(self) -> tuple[Any, ...]:
        """Errors travel between processes; the default would wrap the whole message once more."""
        return _restore, (type(self), self.what, self.where, self.found, self.expected, self.remedy)

    def at(self, where: str) -> UserError:
        """The same fault, told with the place in the grid or command that led to it."""
        place = f"{where}: {self.where}" if self.where else where
        return UserError(self.what, where=place, found=self.found, expected=self.expected, remedy=self.remedy)


def _restore(
    kind: type[UserError], what: str, where: str | None, found: object, expected: str | None, remedy: str | None
) -> UserError:
    return kind(what, where=where, found=found, expected=expected, remedy=remedy)


class DeviceLostError(GecoRayError):
    """After an error on it, a process can't use its GPU any more; another process may. Exit code 3."""

    exit_code = 3


class ResourceError(GecoRayError):
    """The machine or cluster can never satisfy a request. Exit code 3."""

    exit_code = 3


class RayDiedError(GecoRayError):
    """Ray itself ended while a run was going on: its raylet, its control service, or a cluster's head. Exit code 6."""

    exit_code = 6


class LeaseError(GecoRayError):
    """Another driver works on this run folder. Exit code 4."""

    exit_code = 4


class StorageError(GecoRayError):
    """The run folder cannot be read or written. Exit code 5."""

    exit_code = 5


def simplify(name: str) -> str:
    """Reduce a name to its letters and digits in lower case, so that ``BERT-C`` and ``bert_c`` meet."""
    return "".join(ch for ch in name.casefold() if ch.isalnum())


def suggest(name: str, known: Iterable[str]) -> str:
    """The "did you mean" sentence for ``name``, or the list of all known names when nothing is close."""
    names = list(known)
    by_form = {simplify(candidate): candidate for candidate in names}
    close = difflib.get_close_matches(simplify(name), list(by_form), n=2, cutoff=0.6)
    if close:
        return "Did you mean " + " or ".join(repr(by_form[form]) for form in close) + "?"
    return "Known: " + ", ".join(names) + "."


def unknown_name(kind: str, name: str, known: Iterable[str], *, where: str | None = None) -> UserError:
    """The error for a name that no registry holds."""
    return UserError(f"unknown {kind} {name!r}", where=where, remedy=suggest(name, known))
