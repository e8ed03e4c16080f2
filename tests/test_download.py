"""The download against a real HTTP server on loopback, which misbehaves on demand."""

from __future__ import annotations

import hashlib
import http.server
import os
import re
import shlex
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from geco_ray import download
from geco_ray.download import DownloadError, cache_folder, fetch, is_offline, verify
from geco_ray.errors import StorageError, UserError
from geco_ray.geco import remote

BODY = bytes(range(256)) * 1200  # several read buffers
SHA256 = hashlib.sha256(BODY).hexdigest()


class Server:
    """Answers every request with the next of ``plans``, the last one for ever; remembers paths and ranges."""

    def __init__(self) -> None:
        self.plans: list[Callable[[http.server.BaseHTTPRequestHandler], None]] = [whole]
        self.requests: list[tuple[str, str | None]] = []
        self.stop = threading.Event()
        owner = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                owner.requests.append((self.path, self.headers.get("Range")))
                plan = owner.plans.pop(0) if len(owner.plans) > 1 else owner.plans[0]
                plan(self)

            def log_message(self, format: str, *args: object) -> None:
                pass

            stop = owner.stop

        self.http = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.http.daemon_threads = True
        threading.Thread(target=self.http.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.http.server_address[1]}/data.bin"


def reply(handler: http.server.BaseHTTPRequestHandler, status: int, headers: dict[str, object], body: bytes) -> None:
    handler.send_response(status)
    for name, value in headers.items():
        handler.send_header(name, str(value))
    handler.end_headers()
    handler.wfile.write(body)


def whole(handler: http.server.BaseHTTPRequestHandler) -> None:
    reply(handler, 200, {"Content-Length": len(BODY)}, BODY)


def ranged(handler: http.server.BaseHTTPRequestHandler) -> None:
    asked = re.fullmatch(r"bytes=(\d+)-", handler.headers.get("Range") or "")
    start = int(asked[1]) if asked else 0
    if start >= len(BODY):
        reply(handler, 416, {"Content-Length": 0, "Content-Range": f"bytes */{len(BODY)}"}, b"")
    elif asked:
        place = f"bytes {start}-{len(BODY) - 1}/{len(BODY)}"
        reply(handler, 206, {"Content-Length": len(BODY) - start, "Content-Range": place}, BODY[start:])
    else:
        whole(handler)


def cut(size: int) -> Callable[[http.server.BaseHTTPRequestHandler], None]:
    """Declare the whole file, send ``size`` bytes, hang up."""

    def plan(handler: http.server.BaseHTTPRequestHandler) -> None:
        reply(handler, 200, {"Content-Length": len(BODY)}, BODY[:size])

    return plan


def status(code: int) -> Callable[[http.server.BaseHTTPRequestHandler], None]:
    def plan(handler: http.server.BaseHTTPRequestHandler) -> None:
        reply(handler, code, {"Content-Length": 5}, b"sorry")

    return plan


def sends(body: bytes) -> Callable[[http.server.BaseHTTPRequestHandler], None]:
    def plan(handler: http.server.BaseHTTPRequestHandler) -> None:
        reply(handler, 200, {"Content-Length": len(body)}, body)

    return plan


def silent(handler: http.server.BaseHTTPRequestHandler) -> None:
    handler.stop.wait(5)  # type: ignore[attr-defined]


def trickle(handler: http.server.BaseHTTPRequestHandler) -> None:
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


def get(server: Server, target: Path, *, sha256: str = SHA256, retries: int = 2, total: float = 20.0) -> Path:
    return fetch(server.url, sha256, target, timeout=0.5, retries=retries, total=total, backoff=0.01)


def leftovers(target: Path) -> list[str]:
    return sorted(path.name for path in target.parent.iterdir() if path != target)


def test_a_good_file_arrives_whole_and_alone_and_is_not_asked_for_again(server: Server, tmp_path: Path) -> None:
    target = tmp_path / "new folder" / "data.bin"
    assert get(server, target) == target
    assert target.read_bytes() == BODY
    assert leftovers(target) == []
    assert get(server, target) == target
    assert len(server.requests) == 1


def test_the_checksum_may_be_given_in_capitals(server: Server, tmp_path: Path) -> None:
    assert get(server, tmp_path / "data.bin", sha256=SHA256.upper()).read_bytes() == BODY


def test_a_truncated_answer_is_gone_on_with_where_it_stopped(server: Server, tmp_path: Path) -> None:
    server.plans = [cut(100_000), ranged]
    assert get(server, tmp_path / "data.bin").read_bytes() == BODY
    assert [asked for _, asked in server.requests] == [None, "bytes=100000-"]


def test_a_server_without_ranges_is_asked_for_the_whole_file_again(server: Server, tmp_path: Path) -> None:
    server.plans = [cut(100_000), whole]
    assert get(server, tmp_path / "data.bin").read_bytes() == BODY


def test_an_always_truncated_answer_ends_after_the_retries(server: Server, tmp_path: Path) -> None:
    server.plans = [cut(1000)]
    target = tmp_path / "data.bin"
    with pytest.raises(DownloadError, match=f"3 attempts.*ended {len(BODY) - 1000} bytes early") as caught:
        get(server, target)
    assert len(server.requests) == 3
    assert caught.value.exit_code == 2
    assert not target.exists()


def test_a_later_call_resumes_what_an_earlier_one_left(server: Server, tmp_path: Path) -> None:
    target = tmp_path / "data.bin"
    server.plans = [cut(70_000)]
    with pytest.raises(DownloadError):
        get(server, target, retries=0)
    server.plans = [ranged]
    assert get(server, target).read_bytes() == BODY
    assert server.requests[-1][1] == "bytes=70000-"
    assert leftovers(target) == []


@pytest.mark.parametrize("left", [BODY, BODY + b"more", b"torn" + BODY[4:90_000]], ids=["whole", "too long", "torn"])
def test_whatever_lies_in_the_partial_file_the_result_is_right(server: Server, tmp_path: Path, left: bytes) -> None:
    target = tmp_path / "data.bin"
    (tmp_path / f"data.bin.{SHA256[:12]}.part").write_bytes(left)
    server.plans = [ranged]
    assert get(server, target).read_bytes() == BODY
    assert leftovers(target) == []


def test_a_range_that_was_not_asked_for_is_not_appended(server: Server, tmp_path: Path) -> None:
    def elsewhere(handler: http.server.BaseHTTPRequestHandler) -> None:
        body = BODY[10:]
        place = f"bytes 10-{len(BODY) - 1}/{len(BODY)}"
        reply(handler, 206, {"Content-Length": len(body), "Content-Range": place}, body)

    server.plans = [cut(100_000), elsewhere, whole]
    assert get(server, tmp_path / "data.bin").read_bytes() == BODY


def test_a_wrong_file_is_set_aside_and_named_with_both_sums_and_the_command(server: Server, tmp_path: Path) -> None:
    page = b"<html>please log in</html>"
    server.plans = [sends(page)]
    target = tmp_path / "a folder" / "data.bin"
    with pytest.raises(DownloadError) as caught:
        get(server, target)
    assert not target.exists()
    aside = target.with_name("data.bin.rejected")
    assert aside.read_bytes() == page
    assert leftovers(target) == ["data.bin.rejected"]
    text = str(caught.value)
    assert str(aside) in text
    assert hashlib.sha256(page).hexdigest() in text
    assert SHA256 in text
    assert f"`rm {shlex.quote(str(aside))}`" in text
    assert len(server.requests) == 1  # the same answer would come again


def test_a_wrong_file_on_disk_is_refused_and_its_removal_command_works(server: Server, tmp_path: Path) -> None:
    target = tmp_path / "it's here" / "data.bin"
    target.parent.mkdir()
    target.write_bytes(b"older release")
    with pytest.raises(DownloadError) as caught:
        get(server, target)
    assert server.requests == []
    assert str(target) in str(caught.value)
    assert hashlib.sha256(b"older release").hexdigest() in str(caught.value)
    assert SHA256 in str(caught.value)
    command = re.search(r"`(rm .*)`", str(caught.value))
    assert command is not None
    subprocess.run(command[1], shell=True, check=True)
    assert get(server, target).read_bytes() == BODY


@pytest.mark.parametrize("code", [401, 403, 404, 410])
def test_a_refusal_is_final(server: Server, tmp_path: Path, code: int) -> None:
    server.plans = [status(code)]
    with pytest.raises(DownloadError, match=str(code)) as caught:
        get(server, tmp_path / "data.bin")
    assert len(server.requests) == 1
    assert server.url in str(caught.value)
    assert list(tmp_path.iterdir()) == []


def test_a_passing_fault_of_the_server_is_retried(server: Server, tmp_path: Path) -> None:
    server.plans = [status(503), status(429), whole]
    assert get(server, tmp_path / "data.bin").read_bytes() == BODY


def test_a_silent_server_ends_after_its_timeouts(server: Server, tmp_path: Path) -> None:
    server.plans = [silent]
    with pytest.raises(DownloadError, match="too slow"):
        fetch(server.url, SHA256, tmp_path / "data.bin", timeout=0.1, retries=1, backoff=0.01)
    assert len(server.requests) == 2
    assert list(tmp_path.iterdir()) == []


def test_a_trickling_server_ends_at_the_total_time(server: Server, tmp_path: Path) -> None:
    server.plans = [trickle]
    with pytest.raises(DownloadError, match="too slow: the time for this file is over"):
        get(server, tmp_path / "data.bin", total=0.3)
    assert len(server.requests) == 1


def test_an_endless_answer_is_cut_off(server: Server, tmp_path: Path) -> None:
    with pytest.raises(DownloadError, match="too large"):
        fetch(server.url, SHA256, tmp_path / "data.bin", max_bytes=1000)
    assert list(tmp_path.iterdir()) == []


def test_no_network_is_one_sentence_with_address_and_remedy(tmp_path: Path) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{free.getsockname()[1]}/data.bin"
    target = tmp_path / "data.bin"
    with pytest.raises(DownloadError, match="2 attempts") as caught:
        fetch(url, SHA256, target, timeout=0.5, retries=1, backoff=0.01)
    assert url in str(caught.value)
    assert str(target) in str(caught.value)
    assert list(tmp_path.iterdir()) == []


def test_an_unknown_host_is_no_network(tmp_path: Path) -> None:
    with pytest.raises(DownloadError, match="could not be downloaded"):
        fetch("http://geco-ray.invalid/data.bin", SHA256, tmp_path / "x", timeout=2, retries=0)


@pytest.mark.parametrize("how", ["argument", "environment"])
def test_offline_never_asks_and_uses_what_is_there(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    offline = True if how == "argument" else None
    if how == "environment":
        monkeypatch.setenv("GECO_RAY_OFFLINE", "1")
    target = tmp_path / "folder" / "data.bin"
    with pytest.raises(DownloadError, match="switched off") as caught:
        fetch(server.url, SHA256, target, offline=offline)
    assert str(target) in str(caught.value)
    assert not target.parent.exists()
    target.parent.mkdir()
    target.write_bytes(BODY)
    assert fetch(server.url, SHA256, target, offline=offline) == target
    assert server.requests == []


def test_the_argument_outweighs_the_environment(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GECO_RAY_OFFLINE", "1")
    assert fetch(server.url, SHA256, tmp_path / "data.bin", offline=False).read_bytes() == BODY


@pytest.mark.parametrize(("value", "meaning"), [("1", True), ("Yes", True), ("0", False), ("", False), ("off", False)])
def test_the_offline_switch_reads_yes_and_no(monkeypatch: pytest.MonkeyPatch, value: str, meaning: bool) -> None:
    monkeypatch.setenv("GECO_RAY_OFFLINE", value)
    assert is_offline() is meaning


def test_a_misspelt_offline_switch_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GECO_RAY_OFFLINE", "ja")
    with pytest.raises(UserError, match="GECO_RAY_OFFLINE"):
        is_offline()


def test_the_cache_folder_can_be_set(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("GECO_RAY_CACHE", str(tmp_path / "c"))
    assert cache_folder() == tmp_path / "c"


@pytest.mark.skipif(sys.platform in ("win32", "darwin"), reason="XDG is the rule of other platforms")
def test_the_cache_folder_follows_the_platform(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert cache_folder() == tmp_path / "geco_ray"
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    assert cache_folder() == tmp_path / "home" / ".cache" / "geco_ray"


def test_a_folder_that_cannot_be_made_is_named(server: Server, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(StorageError, match=r"data\.bin: cannot be written"):
        get(server, tmp_path / "file" / "data.bin")


def test_a_full_disk_is_of_the_disk_and_leaves_no_target(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    target = tmp_path / "data.bin"
    with pytest.raises(StorageError, match="No space left"):
        get(server, target)
    assert not target.exists()


def test_an_address_of_another_kind_is_a_fault_of_the_caller(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="http"):
        fetch("file:///etc/hosts", SHA256, tmp_path / "x")


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    with pytest.raises(StorageError, match="cannot be read"):
        verify(tmp_path, SHA256)


def test_many_at_once_agree_on_one_right_file(server: Server, tmp_path: Path) -> None:
    def late(handler: http.server.BaseHTTPRequestHandler) -> None:
        time.sleep(0.05)
        whole(handler)

    server.plans = [late]
    target = tmp_path / "data.bin"
    faults: list[BaseException] = []

    def one() -> None:
        try:
            get(server, target)
        except BaseException as error:
            faults.append(error)

    threads = [threading.Thread(target=one) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert faults == []
    assert target.read_bytes() == BODY
    assert leftovers(target) == []


def test_a_killed_download_leaves_no_target_and_is_gone_on_with(server: Server, tmp_path: Path) -> None:
    target = tmp_path / "data.bin"

    def half_then_silent(handler: http.server.BaseHTTPRequestHandler) -> None:
        reply(handler, 200, {"Content-Length": len(BODY)}, BODY[:200_000])
        silent(handler)

    server.plans = [half_then_silent, ranged]
    code = "import sys, pathlib, geco_ray.download as d; d.fetch(*sys.argv[1:3], pathlib.Path(sys.argv[3]))"
    child = subprocess.Popen([sys.executable, "-c", code, server.url, SHA256, str(target)])
    part = tmp_path / f"data.bin.{SHA256[:12]}.part"
    for _ in range(1000):
        if part.exists() and part.stat().st_size:
            break
        time.sleep(0.01)
    child.kill()
    child.wait(10)
    have = part.stat().st_size
    assert 0 < have < len(BODY)
    assert not target.exists()
    assert get(server, target).read_bytes() == BODY
    assert server.requests[-1][1] == f"bytes={have}-"


def test_the_geco_files_come_from_the_pinned_commit_into_the_cache(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    address = remote.file_url("binary_gender_all", "test")
    assert address.startswith("https://raw.githubusercontent.com/braindatalab/gecobench/f0907c69d95353016556a6cbd0c5")
    assert address.endswith("/data/dataset/binary_gender_all/test.jsonl")
    monkeypatch.setenv("GECO_RAY_CACHE", str(tmp_path))
    base = server.url.removesuffix("/data.bin")
    monkeypatch.setattr(remote, "file_url", lambda task, split: f"{base}/{task}/{split}.jsonl")
    monkeypatch.setattr(remote, "SHA256", dict.fromkeys(remote.SHA256, SHA256))
    files = remote.fetch_tasks(["binary_gender_all", "binary_gender_subj"])
    assert files["binary_gender_subj", "test"] == tmp_path / "geco" / "binary_gender_subj" / "test.jsonl"
    assert all(path.read_bytes() == BODY for path in files.values())
    assert sorted(path for path, _ in server.requests) == [
        f"/{task}/{split}.jsonl" for task in ("binary_gender_all", "binary_gender_subj") for split in ("test", "train")
    ]
    with pytest.raises(UserError, match="binary_gender_all"):
        remote.fetch_task("binary_gender_al")


def test_loading_a_geco_task_downloads_it_unless_a_folder_is_given(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from geco_ray.geco.sources import find_files

    monkeypatch.setenv("GECO_RAY_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("GECO_RAY_DATA", raising=False)
    monkeypatch.setattr(remote, "file_url", lambda task, split: server.url)
    monkeypatch.setattr(remote, "SHA256", dict.fromkeys(remote.SHA256, SHA256))
    with pytest.raises(UserError, match="data-dir"):
        find_files("binary_gender_all", tmp_path / "mine", ())
    assert server.requests == []
    server.plans = [whole, cut(1000)]
    with monkeypatch.context() as patch:
        patch.setattr(remote, "fetch", lambda *a, **k: download.fetch(*a, **{**k, "retries": 0}))
        with pytest.raises(UserError, match=r"looked for.*cache.*data-dir"):
            find_files("binary_gender_all", None, ())
    server.plans = [ranged]
    files = find_files("binary_gender_all", None, ())
    assert {split: path.read_bytes() for split, path in files.items()} == {"train": BODY, "test": BODY}
    assert server.requests[-1][1] == "bytes=1000-"  # the half of the pair that was there stayed
