"""The shipped cluster file against a simulated Amazon: what Ray asks for when it starts each kind of machine."""

from __future__ import annotations

import copy
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).parents[2]
moto = pytest.importorskip("moto", reason="moto simulates Amazon; it comes with the dev extra")


@pytest.fixture
def amazon(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """A simulated account with the two profiles that docs/cluster.md makes, and a home for Ray's key pair."""
    for name in [name for name in os.environ if name.startswith("AWS_")]:
        monkeypatch.delenv(name)
    keys = {"AWS_ACCESS_KEY_ID": "x", "AWS_SECRET_ACCESS_KEY": "x", "AWS_DEFAULT_REGION": "us-east-1"}
    for name, value in (keys | {"HOME": str(tmp_path)}).items():
        monkeypatch.setenv(name, value)
    (tmp_path / ".ssh").mkdir()
    import boto3

    with moto.mock_aws():
        for name in ("geco-ray", "geco-ray-head"):
            boto3.client("iam").create_instance_profile(InstanceProfileName=name)
        yield boto3


def started(amazon: Any) -> dict[str, dict[str, Any]]:
    """Each kind of machine as Ray's own provider starts it: the head as ``ray up`` does, workers as the autoscaler."""
    from ray.autoscaler._private.aws.config import bootstrap_aws
    from ray.autoscaler._private.aws.node_provider import AWSNodeProvider
    from ray.autoscaler._private.util import prepare_config

    config = bootstrap_aws(prepare_config(yaml.safe_load((ROOT / "cluster.yaml").read_text(encoding="utf-8"))))
    provider = AWSNodeProvider(config["provider"], config["cluster_name"])
    for name, kind in config["available_node_types"].items():
        role = "head" if name == config["head_node_type"] else "worker"
        tags = {"ray-node-type": role, "ray-user-node-type": name}
        provider.create_node(copy.deepcopy(kind["node_config"]), tags, 1)
    machines = {}
    for reservation in amazon.client("ec2").describe_instances()["Reservations"]:
        for machine in reservation["Instances"]:
            tags = {tag["Key"]: tag["Value"] for tag in machine["Tags"]}
            machines[tags["ray-user-node-type"]] = machine
    return machines


def test_every_machine_starts_with_its_profile_type_and_image(amazon: Any) -> None:
    machines = started(amazon)
    assert {name: machine["IamInstanceProfile"]["Arn"].rpartition("/")[2] for name, machine in machines.items()} == {
        "head": "geco-ray-head",
        "gpu_spot": "geco-ray",
        "cpu_spot": "geco-ray",
    }
    assert {name for name, machine in machines.items() if machine.get("InstanceLifecycle") == "spot"} == {
        "gpu_spot",
        "cpu_spot",
    }
    assert all(machine["ImageId"].startswith("ami-") for machine in machines.values())
