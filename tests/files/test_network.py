"""What a server or a network can do to a download, and where the next attempt goes on."""

from __future__ import annotations

import hashlib
import http.server
import shlex
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from geco_ray.files.download import DownloadError, fetch


def leftovers(target: Path) -> list[str]:
    return sorted(path.name for path in target.parent.iterdir() if path != target)


def test_a_good_file_arrives_whole_and_alone_and_is_not_asked_for_again(server: Any, tmp_path: Path) -> None:
    target = tmp_path / "new folder" / "data.bin"
    assert server.get(target) == target
    assert target.read_bytes() == server.BODY
    assert leftovers(target) == []
    assert server.get(target) == target
    assert len(server.requests) == 1


def test_a_truncated_answer_is_gone_on_with_where_it_stopped(server: Any, tmp_path: Path) -> None:
    server.plans = [server.cut(100_000), server.ranged]
    assert server.get(tmp_path / "data.bin").read_bytes() == server.BODY
    assert [asked for _, asked in server.requests] == [None, "bytes=100000-"]


def test_a_server_without_ranges_is_asked_for_the_whole_file_again(server: Any, tmp_path: Path) -> None:
    server.plans = [server.cut(100_000), server.whole]
    assert server.get(tmp_path / "data.bin").read_bytes() == server.BODY


def test_an_always_truncated_answer_ends_after_the_retries(server: Any, tmp_path: Path) -> None:
    server.plans = [server.cut(1000)]
    target = tmp_path / "data.bin"
    with pytest.raises(DownloadError, match=f"3 attempts.*ended {len(server.BODY) - 1000} bytes early") as caught:
        server.get(target)
    assert len(server.requests) == 3
    assert caught.value.exit_code == 2
    assert not target.exists()


def test_a_later_call_resumes_what_an_earlier_one_left(server: Any, tmp_path: Path) -> None:
    target = tmp_path / "data.bin"
    server.plans = [server.cut(70_000)]
    with pytest.raises(DownloadError):
        server.get(target, retries=0)
    server.plans = [server.ranged]
    assert server.get(target).read_bytes() == server.BODY
    assert server.requests[-1][1] == "bytes=70000-"
    assert leftovers(target) == []


LEFT = {
    "whole": lambda body: body,
    "too long": lambda body: body + b"more",
    "torn": lambda body: b"torn" + body[4:90_000],
}


@pytest.mark.parametrize("left", LEFT.values(), ids=LEFT)
def test_whatever_lies_in_the_partial_file_the_result_is_right(
    server: Any, tmp_path: Path, left: Callable[[bytes], bytes]
) -> None:
    target = tmp_path / "data.bin"
    (tmp_path / f"data.bin.{server.SHA256[:12]}.part").write_bytes(left(server.BODY))
    server.plans = [server.ranged]
    assert server.get(target).read_bytes() == server.BODY
    assert leftovers(target) == []


def test_a_range_that_was_not_asked_for_is_not_appended(server: Any, tmp_path: Path) -> None:
    def elsewhere(handler: http.server.BaseHTTPRequestHandler) -> None:
        body = server.BODY[10:]
        place = f"bytes 10-{len(server.BODY) - 1}/{len(server.BODY)}"
        server.reply(handler, 206, {"Content-Length": len(body), "Content-Range": place}, body)

    server.plans = [server.cut(100_000), elsewhere, server.whole]
    assert server.get(tmp_path / "data.bin").read_bytes() == server.BODY


def test_a_wrong_file_is_set_aside_and_named_with_both_sums_and_the_command(server: Any, tmp_path: Path) -> None:
    page = b"<html>please log in</html>"
    server.plans = [server.sends(page)]
    target = tmp_path / "a folder" / "data.bin"
    with pytest.raises(DownloadError) as caught:
        server.get(target)
    assert not target.exists()
    aside = target.with_name("data.bin.rejected")
    assert aside.read_bytes() == page
    assert leftovers(target) == ["data.bin.rejected"]
    text = str(caught.value)
    assert str(aside) in text
    assert hashlib.sha256(page).hexdigest() in text
    assert server.SHA256 in text
    assert f"`rm {shlex.quote(str(aside))}`" in text
    assert len(server.requests) == 1  # the same answer would come again


@pytest.mark.parametrize("code", [401, 403, 404, 410])
def test_a_refusal_is_final(server: Any, tmp_path: Path, code: int) -> None:
    server.plans = [server.status(code)]
    with pytest.raises(DownloadError, match=str(code)) as caught:
        server.get(tmp_path / "data.bin")
    assert len(server.requests) == 1
    assert server.url in str(caught.value)
    assert list(tmp_path.iterdir()) == []


def test_a_passing_fault_of_the_server_is_retried(server: Any, tmp_path: Path) -> None:
    server.plans = [server.status(503), server.status(429), server.whole]
    assert server.get(tmp_path / "data.bin").read_bytes() == server.BODY


def test_a_silent_server_ends_after_its_timeouts(server: Any, tmp_path: Path) -> None:
    server.plans = [server.silent]
    with pytest.raises(DownloadError, match="too slow"):
        fetch(server.url, server.SHA256, tmp_path / "data.bin", timeout=0.1, retries=1, backoff=0.01)
    assert len(server.requests) == 2
    assert list(tmp_path.iterdir()) == []


def test_a_trickling_server_ends_at_the_total_time(server: Any, tmp_path: Path) -> None:
    server.plans = [server.trickle]
    with pytest.raises(DownloadError, match="too slow: the time for this file is over"):
        server.get(tmp_path / "data.bin", total=0.3)
    assert len(server.requests) == 1


def test_an_endless_answer_is_cut_off(server: Any, tmp_path: Path) -> None:
    with pytest.raises(DownloadError, match="too large"):
        fetch(server.url, server.SHA256, tmp_path / "data.bin", max_bytes=1000)
    assert list(tmp_path.iterdir()) == []


def test_no_network_is_one_sentence_with_address_and_remedy(tmp_path: Path) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{free.getsockname()[1]}/data.bin"
    target = tmp_path / "data.bin"
    with pytest.raises(DownloadError, match="2 attempts") as caught:
        fetch(url, "0" * 64, target, timeout=0.5, retries=1, backoff=0.01)
    assert url in str(caught.value)
    assert str(target) in str(caught.value)
    assert list(tmp_path.iterdir()) == []


def test_an_unknown_host_is_no_network(tmp_path: Path) -> None:
    with pytest.raises(DownloadError, match="could not be downloaded"):
        fetch("http://geco-ray.invalid/data.bin", "0" * 64, tmp_path / "x", timeout=2, retries=0)
