"""What Amazon's machines need, as far as it is known offline: keys, values, regions, profiles, images."""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any

from geco_ray.cli.cluster_checks.file import ClusterFile, Finding
from geco_ray.errors import suggest
from geco_ray.files.yaml_lines import KeyPath as Keys
from geco_ray.runtime.cluster_file import default_images

AWS_KEYS = (
    "type",
    "region",
    "availability_zone",
    "cache_stopped_nodes",
    "key_pair",
    "security_group",
    "use_internal_ips",
    "cloudwatch",
    "aws_credentials",
    "disable_node_updaters",
    "disable_launch_config_check",
    "foreground_node_launch",
    "worker_liveness_check",
)


def check_provider(file: ClusterFile) -> Iterator[Finding]:
    provider = file.table("provider")
    if provider.get("type") != "aws":
        if provider:
            what = f"keys and machines of the provider {provider.get('type')!r} were not looked at, only those of aws"
            yield file.hint(("provider",), what)
        return
    for key in provider:
        if key not in AWS_KEYS:
            yield file.error(("provider", key), f"unknown key {key!r}", suggest(str(key), AWS_KEYS))
    if "region" not in provider:
        yield file.error(("provider",), "no region is named", "Add region: us-east-1, or another")
    elif (service := service_model()) is not None and provider["region"] not in service.regions:
        region = str(provider["region"])
        yield file.error(("provider", "region"), f"unknown region {region!r}", suggest(region, service.regions))
    else:
        yield from _check_default_image(file, str(provider["region"]))


def _check_default_image(file: ClusterFile, region: str) -> Iterator[Finding]:
    """Ray has an image of its own for some regions only; elsewhere each kind of machine must name one."""
    known = default_images()
    if known is None or region in known:
        return
    for name in file.node_types():
        keys = ("available_node_types", name, "node_config")
        if "ImageId" not in file.table(*keys):
            what = f"Ray has no image of its own for {region}, and none is named"
            yield file.error(
                keys, what, "Add ImageId: a Deep Learning AMI of that region with NVIDIA's driver and Docker"
            )


def check_profiles(file: ClusterFile) -> Iterator[Finding]:
    """A machine without a profile cannot write to a bucket; Ray gives one to the head alone."""
    if file.table("provider").get("type") != "aws":
        return
    head = str(file.values.get("head_node_type"))
    with_profile = []
    for name in file.node_types():
        keys = ("available_node_types", name, "node_config")
        if "IamInstanceProfile" in file.table(*keys):
            with_profile.append(name)
        elif name != head:
            what = "no IamInstanceProfile is named, so the first write of such a machine to a bucket will be refused"
            yield file.error(keys, what, "Name a profile whose role may read and write the bucket")
    if any(name != head for name in with_profile):
        keys = ("available_node_types", head, "node_config")
        what = "the head starts machines that have a profile, for which its own role needs iam:PassRole on theirs"
        yield file.hint(keys, what, "Ray's own role for heads does not have it; see docs/cluster.md")


@dataclass(frozen=True, eq=False)
class _Service:
    """What boto3 knows of EC2 without a network."""

    regions: list[str]
    request: Any
    machines: list[str]

    def faults(self, config: dict[str, Any]) -> list[str]:
        """What is wrong with the values of a request for machines."""
        validator = importlib.import_module("botocore.validate").ParamValidator()
        report = str(validator.validate(config | {"MinCount": 1, "MaxCount": 1}, self.request).generate_report())
        return report.splitlines()


@cache
def service_model() -> _Service | None:
    try:
        session = importlib.import_module("botocore.session").get_session()
    except ImportError:
        return None
    model = session.get_service_model("ec2")
    regions = sorted(session.get_available_regions("ec2"))
    request = model.operation_model("RunInstances").input_shape
    return _Service(regions, request, list(model.shape_for("InstanceType").enum))


def check_machines(file: ClusterFile) -> Iterator[Finding]:
    if file.table("provider").get("type") != "aws":
        return
    service = service_model()
    if service is None:
        what = "boto3 is not installed: `ray up` needs it, and machines were not looked at"
        yield file.hint(("provider",), what, 'pip install "geco-ray[aws]"')
        return
    for name in file.node_types():
        keys = ("available_node_types", name, "node_config")
        yield from _check_machine(file, keys, file.table(*keys), service)


def _check_machine(file: ClusterFile, keys: Keys, config: dict[str, Any], service: _Service) -> Iterator[Finding]:
    known = [*service.request.members, "SubnetIds"]  # Ray's own: it takes one of them
    for key in config:
        if key not in known:
            yield file.error((*keys, key), f"unknown key {key!r}", suggest(str(key), known))
    machine = config.get("InstanceType")
    if machine is None:
        yield file.error(keys, "no InstanceType is named")
    elif isinstance(machine, str) and machine not in service.machines:
        remedy = f"{suggest(machine, service.machines)} (or update boto3, if it is new)"
        yield file.error((*keys, "InstanceType"), f"unknown machine type {machine!r}", remedy)
    for fault in service.faults({key: value for key, value in config.items() if key in service.request.members}):
        yield file.error(keys, fault)
