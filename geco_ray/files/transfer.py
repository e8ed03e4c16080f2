"""One HTTP transfer into an open file: what is missing is asked for, faults are kept apart.

:class:`Transient` is a fault that another attempt may not meet; :class:`~geco_ray.errors.UserError` one that it will;
an ``OSError`` that leaves this module is of the disk, never of the network.
"""

from __future__ import annotations

import http.client
import os
import time
import urllib.error
import urllib.request
from dataclasses import dataclass
from typing import BinaryIO, cast

from geco_ray.errors import UserError

_CHUNK = 1 << 16
_RETRIED_STATUS = frozenset({408, 425, 429, 500, 502, 503, 504})


class DownloadError(UserError):
    """A file that is neither here nor available: offline, no network, not found, too slow, wrong content."""


class Transient(Exception):
    """A fault of one attempt."""


@dataclass(frozen=True)
class Limits:
    """``timeout`` seconds without a byte, ``deadline`` on the monotonic clock, ``max_bytes`` of the whole file."""

    timeout: float
    deadline: float
    max_bytes: int


def size_of(stream: BinaryIO) -> int:
    """Bytes in the file behind ``stream``."""
    return os.fstat(stream.fileno()).st_size


def transfer(url: str, stream: BinaryIO, limits: Limits) -> None:
    """Append to ``stream`` what it lacks of the file at ``url``; start again where the server knows no ranges.

    Raises:
        Transient: no connection, too slow, cut short, or an answer such as 503.
        DownloadError: refused (404 and the like) or larger than allowed.
        OSError: the disk.
    """
    have = size_of(stream)
    answer = _open(url, have, limits)
    if answer is None:
        return
    with answer:
        resumes = answer.status == 206 and answer.headers.get("Content-Range", "").startswith(f"bytes {have}-")
        if not resumes:
            stream.truncate(0)
        _copy(url, answer, stream, limits)


def _open(url: str, have: int, limits: Limits) -> http.client.HTTPResponse | None:
    """The answer to the request, or None where the server has nothing beyond the ``have`` bytes (status 416)."""
    headers = {"User-Agent": "geco-ray", "Accept-Encoding": "identity"}
    if have:
        headers["Range"] = f"bytes={have}-"
    request = urllib.request.Request(url, headers=headers)
    try:
        return cast(http.client.HTTPResponse, urllib.request.urlopen(request, timeout=limits.timeout))
    except urllib.error.HTTPError as error:
        error.close()
        if error.code == 416 and have:
            return None
        said = f"the server answered {error.code} {error.reason}"
        if error.code in _RETRIED_STATUS:
            raise Transient(said) from error
        remedy = "Check the address and your access, or give a folder with the files."
        raise DownloadError(said, where=url, remedy=remedy) from error
    except (OSError, http.client.HTTPException) as error:
        raise Transient(_reason(error)) from error


def _copy(url: str, answer: http.client.HTTPResponse, stream: BinaryIO, limits: Limits) -> None:
    declared = answer.headers.get("Content-Length") or ""
    left = int(declared) if declared.isdigit() else None
    size = size_of(stream)
    stream.seek(0, os.SEEK_END)
    while True:
        try:
            piece = answer.read1(_CHUNK)
        except (OSError, http.client.HTTPException) as error:
            stream.flush()
            raise Transient(_reason(error)) from error
        if not piece:
            break
        size += len(piece)
        left = None if left is None else left - len(piece)
        if size > limits.max_bytes:
            stream.truncate(0)
            raise DownloadError("the answer is too large", where=url, expected=f"at most {limits.max_bytes} bytes")
        stream.write(piece)
        if time.monotonic() > limits.deadline:
            stream.flush()
            raise Transient("the server is too slow: the time for this file is over")
    stream.flush()
    if left:
        raise Transient(f"the connection ended {left} bytes early")


def _reason(error: Exception) -> str:
    cause = error.reason if isinstance(error, urllib.error.URLError) else error
    if isinstance(cause, TimeoutError):
        return "the server is too slow: no byte within the time limit"
    return str(cause) or type(cause).__name__
