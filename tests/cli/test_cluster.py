"""The shipped cluster file passes; each way of breaking it is found at its key and line, with no machine contacted."""

from __future__ import annotations

import json
import re
import socket
import subprocess
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import yaml

from geco_ray.cli import main
from geco_ray.cli.cluster_checks import aws, general

ROOT = Path(__file__).parents[2]
SHIPPED = (ROOT / "cluster.yaml").read_text(encoding="utf-8")
RAY = re.findall(r"^ray==(\S+)", (ROOT / "constraints.txt").read_text(encoding="utf-8"), re.M)[0]


class Answer(NamedTuple):
    code: object
    out: str
    err: str

    @property
    def found(self) -> list[dict[str, Any]]:
        return list(json.loads(self.out))


@pytest.fixture(autouse=True)
def _this_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The versions that the shipped file is for, a home with a token, the repository as folder, and no network."""

    def refuse(*words: object) -> None:
        raise AssertionError("the check must not touch the network")

    token = tmp_path / "home" / ".ray" / "auth_token"
    token.parent.mkdir(parents=True)
    token.write_text("secret")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setattr(general, "ray_version", lambda: RAY)
    monkeypatch.setattr(general, "python_version", lambda: "3.11")
    monkeypatch.setattr(socket.socket, "connect", refuse)
    monkeypatch.chdir(ROOT)


def check(capsys: pytest.CaptureFixture[str], path: Path, *words: str) -> Answer:
    with pytest.raises(SystemExit) as ended:
        main(["cluster-check", str(path), *words])
    captured = capsys.readouterr()
    return Answer(ended.value.code, captured.out, captured.err)


def test_the_shipped_file_passes(capsys: pytest.CaptureFixture[str]) -> None:
    answer = check(capsys, ROOT / "cluster.yaml", "--json")
    told = [finding for finding in answer.found if finding["key"] != "provider"]  # there if boto3 is missing
    assert [finding["level"] for finding in told] == ["hint"]
    assert "iam:PassRole" in told[0]["what"]
    assert answer.code == 0


def test_a_token_that_is_not_made_yet_is_a_hint_with_its_command(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    (tmp_path / "home/.ray/auth_token").unlink()
    answer = check(capsys, ROOT / "cluster.yaml")
    assert answer.code == 0
    assert "ray get-auth-token --generate" in answer.out
    assert re.search(r"hint \S+cluster.yaml:\d+ file_mounts", answer.out)


def test_an_empty_token_is_a_fault(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    (tmp_path / "home/.ray/auth_token").write_text("")
    assert check(capsys, ROOT / "cluster.yaml").code == 2


TOKEN = "  /home/ray/.ray/auth_token: ~/.ray/auth_token\n"
IMAGE = f"rayproject/ray:{RAY}-py311-gpu"
NEEDS_BOTO = pytest.mark.skipif(aws.service_model() is None, reason="boto3 is not installed")
BROKEN = [
    pytest.param("max_workers: 24", "max_worker: 24", "max_worker", "Did you mean 'max_workers'", id="top-level key"),
    pytest.param("max_workers: 24", "max_workers: many", "max_workers", "'many' is not of type", id="type"),
    pytest.param("head_node_type: head", "head_node_type: haed", "", "head_node_type", id="head"),
    pytest.param("min_workers: 0", "min_workers: 30", "", "min_workers", id="more at least than at most"),
    pytest.param("    resources: {CPU: 0}", "    labels: {}", "available_node_types.head", "resources", id="resources"),
    pytest.param("CPU: 0}", "CPU: 0.5}", "available_node_types.head.resources.CPU", "0.5", id="half a CPU"),
    pytest.param("container_name", "container", "docker.container", "'container_name'", id="docker key"),
    pytest.param("type: aws", "type: awss", "", "awss", id="provider"),
    pytest.param("region: us", "regionn: us", "provider.regionn", "Did you mean 'region'", id="provider key"),
    pytest.param("us-east-1", "us-eats-1", "provider.region", "'us-east-1'", id="region", marks=NEEDS_BOTO),
    pytest.param(
        *("g5.xlarge", "g5.xlrage", "available_node_types.gpu_spot.node_config.InstanceType", "'g5.xlarge'"),
        id="machine type",
        marks=NEEDS_BOTO,
    ),
    pytest.param(
        *("InstanceMarketOptions", "MarketOptions", "available_node_types.gpu_spot.node_config.MarketOptions"),
        "Did you mean 'InstanceMarketOptions'",
        id="machine key",
        marks=NEEDS_BOTO,
    ),
    pytest.param(
        *("VolumeSize: 100", "VolumeSize: big", "available_node_types.cpu_spot.node_config", "Ebs.VolumeSize"),
        id="machine value",
        marks=NEEDS_BOTO,
    ),
    pytest.param(
        *("      InstanceType: c6i.8xlarge\n", "", "available_node_types.cpu_spot.node_config", "no InstanceType"),
        id="no machine",
        marks=NEEDS_BOTO,
    ),
    pytest.param(
        IMAGE, "rayproject/ray:2.9.0-py311-gpu", "docker.image", f"Ray 2.9.0 and this machine {RAY}", id="ray"
    ),
    pytest.param(IMAGE, f"rayproject/ray:{RAY}-py310-gpu", "docker.image", "Python 3.10", id="python"),
    pytest.param(IMAGE, "rayproject/ray:latest-gpu", "docker.image", "does not pin", id="unpinned"),
    pytest.param(IMAGE, f"rayproject/ray-ml:{RAY}-py311", "docker.image", "no longer made", id="ray-ml"),
    pytest.param(f"  image: {IMAGE}\n", "", "docker", "no image is named", id="no image"),
    pytest.param("geco_ray: .\n", "geco_ray: ./nowhere\n", "file_mounts./home/ray/geco_ray", "not there", id="mount"),
    pytest.param(TOKEN, "", "file_mounts", "~/.ray/auth_token", id="no token"),
    pytest.param(
        *("      IamInstanceProfile: {Name: geco-ray}  # a role that may use the bucket\n", ""),
        *("available_node_types.gpu_spot.node_config", "no IamInstanceProfile"),
        id="a worker without a profile",
    ),
    pytest.param(
        *("us-east-1", "af-south-1", "available_node_types.head.node_config", "no image of its own for af-south-1"),
        id="a region without an image",
        marks=NEEDS_BOTO,
    ),
]


@pytest.mark.parametrize(("old", "new", "key", "said"), BROKEN)
def test_a_broken_file_is_refused_at_its_place(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, old: str, new: str, key: str, said: str
) -> None:
    assert old in SHIPPED
    text = SHIPPED.replace(old, new, 1)
    path = tmp_path / "cluster.yaml"
    path.write_text(text, encoding="utf-8")
    answer = check(capsys, path, "--json")
    assert answer.code == 2
    errors = [finding for finding in answer.found if finding["level"] == "error"]
    (error,) = [finding for finding in errors if said in finding["what"] + finding["remedy"]][:1]
    assert error["key"] == key
    if key:
        assert key.rpartition(".")[2] in text.splitlines()[error["line"] - 1]
    shown = check(capsys, path).out
    assert said in shown
    assert f"{len(errors)} errors" in shown


def test_ray_started_without_its_token_is_refused(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    path = tmp_path / "cluster.yaml"
    path.write_text(SHIPPED.replace("    - -e RAY_AUTH_MODE=token\n", "").replace("RAY_AUTH_MODE=token ray", "ray"))
    keys = [finding["key"] for finding in check(capsys, path, "--json").found]
    assert keys[:2] == ["head_start_ray_commands", "worker_start_ray_commands"]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("a: [", "not valid YAML"),
        ("- a\n", "is a mapping"),
        ("", "is a mapping"),
        (SHIPPED + "max_workers: 3\n", "'max_workers' is given twice"),
        ("{}\n", "cluster_name"),
        ("provider: 3\navailable_node_types: [x]\nfile_mounts: {a: 3}\n", "Ray refuses"),
    ],
)
def test_what_is_no_cluster_file_is_refused_without_a_traceback(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, text: str, said: str
) -> None:
    path = tmp_path / "cluster.yaml"
    path.write_text(text, encoding="utf-8")
    answer = check(capsys, path)
    assert answer.code == 2
    assert said in answer.out + answer.err


def test_a_missing_file_is_refused(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    answer = check(capsys, tmp_path / "nowhere.yaml")
    assert answer.code == 2
    assert "nowhere.yaml" in answer.err


def test_without_boto3_the_rest_is_checked_and_its_command_named(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(aws, "service_model", lambda: None)
    answer = check(capsys, ROOT / "cluster.yaml")
    assert answer.code == 0
    assert 'pip install "geco-ray[aws]"' in answer.out


def test_another_image_or_provider_is_said_not_to_be_looked_into(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    path = tmp_path / "cluster.yaml"
    path.write_text(SHIPPED.replace(IMAGE, "me/mine:1").replace("type: aws", "type: gcp"), encoding="utf-8")
    found = check(capsys, path, "--json").found
    hints = {finding["key"] for finding in found if finding["level"] == "hint"}
    assert {"docker.image", "provider"} <= hints


# ---- the page on clusters


PAGE = (ROOT / "docs" / "cluster.md").read_text(encoding="utf-8")
TEMPLATES = ROOT / "docs" / "cluster"


def _programs() -> list[list[str]]:
    """Every command of the page, without comments and quotes; those inside a quoted command too."""
    script = (TEMPLATES / "slurm.sbatch").read_text(encoding="utf-8")
    blocks = "\n".join([script, *re.findall(r"^```\w*\n(.*?)^```", PAGE, re.M | re.S)]).replace("\\\n", " ")
    inline = "\n".join(re.findall(r"`([^`\n]+)`", re.sub(r"^```.*?^```", "", PAGE, flags=re.M | re.S)))
    text = re.sub(r"\s#.*|\"", " ", f"{blocks}\n{inline}")
    text = re.sub(r"\b(python -m geco_ray\.grid)\b", "\ngeco-ray run", text)
    programs = [line.split("&&")[-1].split() for line in text.splitlines()]
    return [words for words in programs if words]


def test_commands_of_the_page_exist_with_their_options() -> None:
    import typer

    from geco_ray.cli.app import app

    verbs = typer.main.get_command(app).commands  # type: ignore[attr-defined]
    seen = set()
    for words in _programs():
        if words[:1] != ["geco-ray"]:
            continue
        command = verbs[words[1]]
        command = command.commands[words[2]] if words[1] == "data" else command
        known = {name for parameter in command.params for name in parameter.opts}
        assert {word for word in words if word.startswith("--")} <= known, words
        seen.add(words[1])
    assert {"run", "plan", "status", "check", "data", "doctor", "cluster-check"} <= seen


def test_commands_of_ray_on_the_page_exist() -> None:
    from ray.scripts.scripts import cli

    verbs = {words[1] for words in _programs() if words[0] == "ray" and len(words) > 1}
    assert verbs >= {"up", "down", "exec", "attach", "get-auth-token", "symmetric-run"}
    assert verbs <= set(cli.commands)


def test_the_head_of_the_shipped_file_and_the_page_give_the_same_commands() -> None:
    def told(text: str) -> list[str]:
        return [" ".join(line.split()) for line in re.findall(r"^(?:#   )?(ray exec .*--tmux .*)$", text, re.M)]

    assert told(SHIPPED) == told(PAGE)
    assert "--data-dir data" in told(SHIPPED)[0]


def test_a_folder_with_gigabytes_is_refused_and_what_fills_it_named(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    mounted = tmp_path / "project"
    (mounted / "env" / "lib").mkdir(parents=True)
    with (mounted / "env" / "lib" / "torch.so").open("wb") as file:
        file.truncate(2_300_000_000)
    path = tmp_path / "cluster.yaml"
    path.write_text(SHIPPED.replace("geco_ray: .\n", f"geco_ray: {mounted}\n"), encoding="utf-8")
    (error,) = [finding for finding in check(capsys, path, "--json").found if finding["level"] == "error"]
    assert error["key"] == "file_mounts./home/ray/geco_ray"
    assert "2.3 GB of it is env" in error["what"]
    path.write_text(path.read_text().replace('".venv"', '".venv", "env"'), encoding="utf-8")
    assert check(capsys, path).code == 0


def test_gpu_machines_with_a_pin_for_any_torch_are_refused(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    before, _, after = SHIPPED.partition("setup_commands:\n")
    start = after.index("head_start_ray_commands")
    path = tmp_path / "cluster.yaml"
    plain = "setup_commands:\n  - cd /home/ray/geco_ray && pip install -e . -c constraints.txt\n\n"
    path.write_text(before + plain + after[start:], encoding="utf-8")
    (error,) = [finding for finding in check(capsys, path, "--json").found if finding["level"] == "error"]
    assert error["key"] == "setup_commands.0"
    assert "says nothing of CUDA" in error["what"]


@pytest.mark.parametrize("pattern", ["env", "**/lib", "*.so"])
def test_what_rsync_leaves_out_is_not_counted(tmp_path: Path, pattern: str) -> None:
    mounted = tmp_path / "project"
    (mounted / "env" / "lib").mkdir(parents=True)
    (mounted / "env" / "lib" / "torch.so").write_bytes(b"12345")
    (mounted / "code.py").write_bytes(b"123")
    assert general.mounted_sizes(mounted, [pattern]) == {"code.py": 3}
    assert general.mounted_sizes(mounted, ["nothing"]) == {"code.py": 3, "env": 5}


# ---- the templates beside the page


def test_ray_takes_the_file_for_machines_of_one_s_own() -> None:
    from geco_ray.runtime.cluster_file import validate_cluster

    values = yaml.safe_load((TEMPLATES / "on-premise.yaml").read_text(encoding="utf-8"))
    assert validate_cluster(values) is None
    assert "ray stop" not in str(values)
    assert validate_cluster(values | {"provider": {"type": "local"}}) is not None


def test_the_job_for_kubernetes_runs_our_command_on_our_ray() -> None:
    job = yaml.safe_load((TEMPLATES / "kuberay-rayjob.yaml").read_text(encoding="utf-8"))
    cluster = job["spec"]["rayClusterSpec"]
    assert (job["apiVersion"], job["kind"], cluster["rayVersion"]) == ("ray.io/v1", "RayJob", RAY)
    assert job["spec"]["entrypoint"].startswith("python -m geco_ray.grid full --address auto --root s3://")
    groups = [cluster["headGroupSpec"], *cluster["workerGroupSpecs"]]
    for group in groups:
        (container,) = group["template"]["spec"]["containers"]
        assert container["resources"]["requests"] == container["resources"]["limits"]
    assert cluster["headGroupSpec"]["rayStartParams"]["num-cpus"] == "0"
    for group in cluster["workerGroupSpecs"]:
        assert group["minReplicas"] <= group["replicas"] <= group["maxReplicas"]


@pytest.mark.parametrize("name", sorted(path.name for path in TEMPLATES.iterdir()))
def test_every_template_is_on_the_page(name: str) -> None:
    assert f"(cluster/{name})" in PAGE


def test_the_slurm_script_is_a_script() -> None:
    script = (TEMPLATES / "slurm.sbatch").read_text(encoding="utf-8")
    assert script.startswith("#!/bin/bash\n#SBATCH")
    done = subprocess.run(["bash", "-n"], input=script, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
