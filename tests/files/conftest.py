"""A real HTTP server on loopback that misbehaves on demand."""

from __future__ import annotations

import hashlib
import http.server
import re
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from geco_ray.files.download import fetch

Handler = http.server.BaseHTTPRequestHandler
Plan = Callable[[Handler], None]

BODY = bytes(range(256)) * 1200  # several read buffers
SHA256 = hashlib.sha256(BODY).hexdigest()


def reply(handler: Handler, status: int, headers: dict[str, object], body: bytes) -> None:
    handler.send_response(status)
    for name, value in headers.items():
        handler.send_header(name, str(value))
    handler.end_headers()
    handler.wfile.write(body)


def whole(handler: Handler) -> None:
    reply(handler, 200, {"Content-Length": len(BODY)}, BODY)


def ranged(handler: Handler) -> None:
    asked = re.fullmatch(r"bytes=(\d+)-", handler.headers.get("Range") or "")
    start = int(asked[1]) if asked else 0
    if start >= len(BODY):
        reply(handler, 416, {"Content-Length": 0, "Content-Range": f"bytes */{len(BODY)}"}, b"")
    elif asked:
        place = f"bytes {start}-{len(BODY) - 1}/{len(BODY)}"
        reply(handler, 206, {"Content-Length": len(BODY) - start, "Content-Range": place}, BODY[start:])
    else:
        whole(handler)


def cut(size: int) -> Plan:
    """Declare the whole file, send ``size`` bytes, hang up."""

    def plan(handler: Handler) -> None:
        reply(handler, 200, {"Content-Length": len(BODY)}, BODY[:size])

    return plan


def status(code: int) -> Plan:
    def plan(handler: Handler) -> None:
        reply(handler, code, {"Content-Length": 5}, b"sorry")

    return plan


def sends(body: bytes) -> Plan:
    def plan(handler: Handler) -> None:
        reply(handler, 200, {"Content-Length": len(body)}, body)

    return plan


def silent(handler: Handler) -> None:
    handler.stop.wait(5)  # type: ignore[attr-defined]


def trickle(handler: Handler) -> None:
    """A byte now and then: never silent for long, never done."""
    handler.send_response(200)
    handler.send_header("Content-Length", str(len(BODY)))
    handler.end_headers()
    for byte in BODY:
        if handler.stop.wait(0.02):  # type: ignore[attr-defined]
            return
        try:
            handler.wfile.write(bytes([byte]))
            handler.wfile.flush()
        except OSError:
            return


class Server:
    """Answers every request with the next of ``plans``, the last one for ever; remembers paths and ranges.

    The plans are its attributes, so that tests need not import this file.
    """

    BODY, SHA256 = BODY, SHA256
    reply = staticmethod(reply)
    whole = staticmethod(whole)
    ranged = staticmethod(ranged)
    silent = staticmethod(silent)
    trickle = staticmethod(trickle)
    cut = staticmethod(cut)
    status = staticmethod(status)
    sends = staticmethod(sends)

    def __init__(self) -> None:
        self.plans: list[Plan] = [whole]
        self.requests: list[tuple[str, str | None]] = []
        self.stop = threading.Event()
        owner = self

        class Recording(Handler):
            def do_GET(self) -> None:  # noqa: N802 (the name that the standard library calls)
                owner.requests.append((self.path, self.headers.get("Range")))
                plan = owner.plans.pop(0) if len(owner.plans) > 1 else owner.plans[0]
                plan(self)

            def log_message(self, format: str, *args: object) -> None:
                pass

            stop = owner.stop

        self.http = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Recording)
        self.http.daemon_threads = True
        threading.Thread(target=self.http.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.http.server_address[1]}/data.bin"

    def get(self, target: Path, *, sha256: str = SHA256, retries: int = 2, total: float = 20.0) -> Path:
        """Fetch from this server with short times."""
        return fetch(self.url, sha256, target, timeout=0.5, retries=retries, total=total, backoff=0.01)


@pytest.fixture(autouse=True)
def _own_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("GECO_RAY_OFFLINE", "GECO_RAY_CACHE", "http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("no_proxy", "127.0.0.1")


@pytest.fixture
def server() -> Iterator[Server]:
    running = Server()
    yield running
    running.stop.set()
    running.http.shutdown()
    running.http.server_close()
