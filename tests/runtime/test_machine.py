"""The machine around a run: the CPUs that it may use, a place for sockets, a cluster that is gone."""

from __future__ import annotations

import os
import socket
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from geco_ray.device import usable_cpus
from geco_ray.errors import ResourceError
from geco_ray.plan.config import RunSettings
from geco_ray.runtime import connect, session_folder
from geco_ray.runtime.session import ray_session
from geco_ray.runtime.session_folder import remove_folder, temporary_folder

Tree = tuple[Path, Path]


@pytest.fixture
def many_cpus(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(64)), raising=False)


def control_groups(folder: Path, groups: str, files: dict[str, str]) -> Tree:
    for name, content in files.items():
        path = folder / "fs" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)
    (folder / "cgroup").write_text(groups)
    return folder / "cgroup", folder / "fs"


V1 = "4:cpu,cpuacct:/docker/x\n1:memory:/docker/x\n"


@pytest.mark.parametrize(
    ("groups", "files", "cpus"),
    [
        ("0::/\n", {"cpu.max": "max 100000\n"}, 64),
        ("0::/\n", {"cpu.max": "200000 100000\n"}, 2),
        ("0::/a/b\n", {"a/cpu.max": "350000 100000\n", "a/b/cpu.max": "max 100000\n"}, 3),
        ("0::/a/b\n", {"a/cpu.max": "800000 100000\n", "a/b/cpu.max": "150000 100000\n"}, 1),
        ("0::/\n", {"cpu.max": "50000 100000\n"}, 1),
        ("0::/gone\n", {}, 64),
        (V1, {"cpu,cpuacct/docker/x/cpu.cfs_quota_us": "-1", "cpu,cpuacct/docker/x/cpu.cfs_period_us": "100000"}, 64),
        (V1, {"cpu,cpuacct/cpu.cfs_quota_us": "400000\n", "cpu,cpuacct/cpu.cfs_period_us": "100000\n"}, 4),
        (V1, {"cpu/docker/x/cpu.cfs_quota_us": "300000", "cpu/docker/x/cpu.cfs_period_us": "100000"}, 3),
        ("nonsense\n\n", {"cpu.max": "x"}, 64),
    ],
)
@pytest.mark.usefixtures("many_cpus")
def test_a_quota_of_any_control_group_counts(tmp_path: Path, groups: str, files: dict[str, str], cpus: int) -> None:
    assert usable_cpus(*control_groups(tmp_path, groups, files)) == cpus


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="only Linux has affinities")
def test_the_affinity_of_the_process_counts() -> None:
    before = os.sched_getaffinity(0)
    try:
        os.sched_setaffinity(0, {min(before)})
        assert usable_cpus() == 1
    finally:
        os.sched_setaffinity(0, before)


@given(st.text("aü東", min_size=1, max_size=60))
def test_no_socket_of_ray_gets_a_path_that_is_too_long(tmp_path_factory: pytest.TempPathFactory, name: str) -> None:
    base = Path("/tmp") / f"t{os.getpid()}{name}"
    base.mkdir()
    try:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(session_folder.tempfile, "gettempdir", lambda: str(base))
            folder = temporary_folder()
        remove_folder(folder)
        longest = folder / f"session_2026-11-30_23-02-53_123456_{os.getpid()}" / "sockets" / "plasma_store"
        assert len(os.fsencode(longest)) <= 107
        assert folder.parent == base or len(os.fsencode(longest)) + len(os.fsencode(base)) - len("/tmp") > 107
    finally:
        base.rmdir()


@pytest.mark.parametrize("port", ["1", "99999", "x", "-1"])
def test_a_stale_address_is_given_up_in_seconds_and_its_variable_named(
    monkeypatch: pytest.MonkeyPatch, port: str
) -> None:
    monkeypatch.setenv("RAY_ADDRESS", f"127.0.0.1:{port}")
    began = time.monotonic()
    with (
        pytest.raises(ResourceError, match=r"given by RAY_ADDRESS.*Unset the variable RAY_ADDRESS"),
        ray_session(RunSettings()),
    ):
        pass
    assert time.monotonic() - began < 15


def test_what_listens_and_is_no_cluster_is_given_up_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connect, "_CONNECT_SECONDS", 1)
    with socket.socket() as deaf:
        deaf.bind(("127.0.0.1", 0))
        deaf.listen()
        address = "{}:{}".format(*deaf.getsockname())
        with pytest.raises(ResourceError, match="given by --address"), ray_session(RunSettings(address=address)):
            pass
