"""Files from the network, checked before anybody sees them.

A file arrives in a partial file beside its target, is compared with its SHA-256, forced to disk and renamed. So the
target is absent or right, whatever interrupts the transfer, and the next call goes on where the last one stopped.
Only the standard library is used. Nothing here knows what the files mean.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import sys
import threading
import time
from collections.abc import Iterator
from io import BufferedRandom
from pathlib import Path

from geco_ray.errors import StorageError, UserError
from geco_ray.files.atomic import force_names_to_disk, force_to_disk
from geco_ray.files.checksums import not_the_pinned_file, sha256_of
from geco_ray.files.transfer import DownloadError, Limits, Transient, size_of, transfer

__all__ = ["DownloadError", "fetch", "is_offline", "sha256_of", "verify"]

_YES, _NO = frozenset({"1", "true", "yes", "on"}), frozenset({"", "0", "false", "no", "off"})
_LONGEST_WAIT = 8.0


def is_offline() -> bool:
    """Whether ``$GECO_RAY_OFFLINE`` forbids the network.

    Raises:
        UserError: the variable is neither a yes nor a no.
    """
    value = os.environ.get("GECO_RAY_OFFLINE", "").strip().casefold()
    if value not in _YES | _NO:
        raise UserError("not a switch", where="GECO_RAY_OFFLINE", found=value, expected="1 or 0")
    return value in _YES


def verify(path: Path, sha256: str) -> None:
    """Check a file against its SHA-256.

    Raises:
        DownloadError: another content; the message names the file, both sums and the command that removes it.
        StorageError: the file cannot be read.
    """
    try:
        found = sha256_of(path)
    except OSError as error:
        raise StorageError(f"{path}: cannot be read ({error.strerror or error}).") from error
    if found != sha256.lower():
        raise _mismatch(path, sha256, found, "then run the same command again")


def fetch(
    url: str,
    sha256: str,
    target: Path,
    *,
    offline: bool | None = None,
    timeout: float = 30.0,
    retries: int = 3,
    total: float = 900.0,
    backoff: float = 0.5,
    max_bytes: int = 1 << 30,
) -> Path:
    """Have ``target`` with the content that ``sha256`` names, from disk if it is there, else from ``url``.

    Args:
        url: an http or https address.
        sha256: 64 hex digits.
        target: where the file shall lie, and what is returned; its folder is made.
        offline: never touch the network; by default what ``$GECO_RAY_OFFLINE`` says.
        timeout: seconds without a single byte after which an attempt ends.
        retries: attempts after the first; each goes on where the last one stopped, if the server allows it.
        total: seconds for all attempts together, a safety net against a server that trickles.
        backoff: seconds before the first retry; doubled each time, at most eight.
        max_bytes: larger files are refused.

    Raises:
        DownloadError: offline and absent; refused, unreachable, too slow or truncated after all retries; or a wrong
            checksum, of the file that lies there or of what the server sent (kept as ``<target>.rejected``).
        StorageError: the folder cannot be written.
        ValueError: the address or the checksum is malformed.
    """
    if len(sha256) != 64 or not url.startswith(("http://", "https://")):
        raise ValueError(f"needs an http(s) address and a SHA-256 in hex, not {url!r} and {sha256!r}")
    if target.exists():
        verify(target, sha256)
    elif is_offline() if offline is None else offline:
        raise _switched_off(url, target)
    else:
        _download(url, sha256, target, Limits(timeout, time.monotonic() + total, max_bytes), retries, backoff)
    return target


def _download(url: str, sha256: str, target: Path, limits: Limits, retries: int, backoff: float) -> None:
    """Put the file at ``target`` once it is complete and checked."""
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with _partial_file(target, sha256) as (stream, part):
            _complete(url, sha256, stream, target, limits, retries, backoff)
            _publish(stream, part, target)
    except OSError as error:  # of the disk: the network's errors have other types by now
        raise StorageError(f"{target}: cannot be written ({error.strerror or error}).") from error


def _complete(
    url: str, sha256: str, stream: BufferedRandom, target: Path, limits: Limits, retries: int, backoff: float
) -> None:
    """Fill ``stream`` until its checksum is right; try ``retries`` more times, then say what stood in the way."""
    faults, restarted = 0, False
    while True:
        resumed = size_of(stream) > 0
        try:
            transfer(url, stream, limits)
        except Transient as fault:
            faults += 1
            wait = min(backoff * 2 ** (faults - 1), _LONGEST_WAIT)
            if faults > retries or time.monotonic() + wait > limits.deadline:
                raise _unreachable(url, target, str(fault), faults) from fault
            time.sleep(wait)
            continue
        stream.seek(0)
        found = hashlib.file_digest(stream, "sha256").hexdigest()
        if found == sha256.lower():
            return
        if not resumed or restarted:
            raise _reject(stream, target, sha256, found, url)
        restarted = True  # what an earlier run left may be torn: once more from the first byte
        stream.truncate(0)


@contextlib.contextmanager
def _partial_file(target: Path, sha256: str) -> Iterator[tuple[BufferedRandom, Path]]:
    """The partial file of this content, locked; a private one (no resuming) while another process holds it.

    The lock only saves work: were two processes to write one file, the checksum would refuse the mixture.
    """
    part = target.with_name(f"{target.name}.{sha256[:12]}.part")
    stream = part.open("a+b")
    shared = _lock(stream) and _is_at(stream, part)
    if not shared:
        stream.close()
        part = part.with_suffix(f".{os.getpid()}-{threading.get_ident()}.part")
        stream = part.open("w+b")
    try:
        yield stream, part
    finally:
        worthless = not stream.closed and (not shared or not size_of(stream)) and _is_at(stream, part)
        stream.close()
        if worthless:
            part.unlink(missing_ok=True)


def _lock(stream: BufferedRandom) -> bool:
    try:
        import fcntl
    except ImportError:
        return True
    try:
        fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:  # a file system without locks
        return True
    return True


def _is_at(stream: BufferedRandom, path: Path) -> bool:
    """Whether the open file is still the one at ``path``: its owner may have renamed it to the target meanwhile."""
    try:
        return os.path.samestat(os.fstat(stream.fileno()), path.stat())
    except FileNotFoundError:
        return False


def _publish(stream: BufferedRandom, part: Path, target: Path) -> None:
    force_to_disk(stream)
    if sys.platform == "win32":  # an open file cannot be renamed there; elsewhere the lock is held until it is
        stream.close()
    part.replace(target)
    force_names_to_disk(target.parent)


def _mismatch(path: Path, expected: str, found: str, then: str) -> DownloadError:
    return not_the_pinned_file(path, found=found, expected=expected, then=then, kind=DownloadError)


def _reject(stream: BufferedRandom, target: Path, expected: str, found: str, url: str) -> DownloadError:
    """Set the wrong bytes aside where they can be looked at (often a log-in page) and never be taken for the file."""
    aside = target.with_name(f"{target.name}.rejected")
    stream.seek(0)
    aside.write_bytes(stream.read())
    stream.truncate(0)
    return _mismatch(aside, expected, found, f"and look whether a proxy or a log-in page answers for {url}")


def _switched_off(url: str, target: Path) -> DownloadError:
    remedy = f"Unset GECO_RAY_OFFLINE to download it from {url}, or put it there by hand."
    return DownloadError("the file is not here and the network is switched off", where=str(target), remedy=remedy)


def _unreachable(url: str, target: Path, why: str, attempts: int) -> DownloadError:
    return DownloadError(
        f"could not be downloaded in {attempts} attempt{'s' if attempts != 1 else ''}: {why}",
        where=url,
        remedy=f"Run the same command again to go on, or put the file at {target} by hand.",
    )
