"""``geco-ray cluster-check``: everything about a cluster file that can be known before a machine is paid for.

Ray checks the keys of a file when it is used, and not the values: a wrong machine type, a misspelt region, a folder
that is not there or an image with another Ray come to light minutes later, on a machine that costs money. This looks at
all of them offline: with Ray's schema, with what boto3 knows of EC2, and with what is installed here.
"""

from __future__ import annotations

import importlib
import importlib.metadata
import json
import re
import sys
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from geco_ray.cli.output import PlainConsole, labelled
from geco_ray.errors import UserError, suggest
from geco_ray.files.home import expand_home
from geco_ray.files.yaml_lines import KeyPath as Keys
from geco_ray.files.yaml_lines import Strictness, decode_text, read_yaml

TOKEN = "/.ray/auth_token"
TOKEN_COMMAND = "ray get-auth-token --generate"
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
_START = ("head_start_ray_commands", "worker_start_ray_commands")


@dataclass(frozen=True)
class Finding:
    """One fault (``error``: it will not work) or one thing to do before ``ray up`` (``hint``)."""

    level: Literal["error", "hint"]
    key: str
    line: int | None
    what: str
    remedy: str = ""


@dataclass(frozen=True, eq=False)
class ClusterFile:
    """The values of a cluster file and the line of every key."""

    name: str
    values: dict[str, Any]
    lines: dict[Keys, int]

    def error(self, keys: Keys, what: str, remedy: str = "") -> Finding:
        """A fault at a key."""
        return Finding("error", _dotted(keys), self._line(keys), what, remedy)

    def hint(self, keys: Keys, what: str, remedy: str = "") -> Finding:
        """A thing to do, at a key."""
        return Finding("hint", _dotted(keys), self._line(keys), what, remedy)

    def table(self, *keys: str) -> dict[str, Any]:
        """The mapping at a key; empty where there is none, since Ray's schema tells of wrong types."""
        value: Any = self.values
        for key in keys:
            value = value.get(key) if isinstance(value, dict) else None
        return value if isinstance(value, dict) else {}

    def _line(self, keys: Keys) -> int | None:
        while keys and keys not in self.lines:
            keys = keys[:-1]
        return self.lines.get(keys)


def _dotted(keys: Keys) -> str:
    return ".".join(map(str, keys))


def read_cluster(path: Path) -> ClusterFile:
    """Read a cluster file.

    Raises:
        UserError: it cannot be read, is not YAML, holds a key twice, or is no mapping.
    """
    try:
        text = decode_text(path.read_bytes(), str(path))
    except OSError as error:
        raise UserError(f"the cluster file cannot be read: {error}", where=str(path)) from None
    document = read_yaml(text, lambda line: f"{path}:{line}", Strictness("cluster files", "any"))
    if not isinstance(document.value, dict):
        raise UserError("a cluster file is a mapping of keys to values", where=str(path))
    return ClusterFile(str(path), document.value, document.lines)


def check_cluster(file: ClusterFile) -> list[Finding]:
    """All findings, faults first; paths are looked for from the current folder, as ``ray up`` does."""
    checks = (_check_schema, _check_images, _check_mounts, _check_token, _check_provider, _check_machines)
    found = [finding for check in checks for finding in check(file)]
    return sorted(found, key=lambda finding: finding.level != "error")


def _check_schema(file: ClusterFile) -> Iterator[Finding]:
    from geco_ray.runtime.cluster_file import validate_cluster

    try:
        refusal = validate_cluster(file.values)
    except ImportError:
        yield file.hint((), "this Ray offers no check of its own, so its schema was not looked at")
        return
    if refusal is not None:
        yield file.error(refusal.path, f"Ray refuses the file: {refusal.what}", refusal.remedy)


def _check_images(file: ClusterFile) -> Iterator[Finding]:
    tables: list[Keys] = [("docker",), *(("available_node_types", n, "docker") for n in _node_types(file))]
    found = False
    for keys in tables:
        for key, image in file.table(*map(str, keys)).items():
            if key in ("image", "head_image", "worker_image") and isinstance(image, str):
                found = True
                yield from _check_image(file, (*keys, key), image)
    commands = str(file.values.get("setup_commands", ""))
    if not found and f"=={_ray_version()}" not in commands:
        what = "no image is named, so Ray's own set-up would install another Ray on the machines"
        yield file.error(("docker",), what, f"Name rayproject/ray:{_wanted_tag()}")


def _check_image(file: ClusterFile, keys: Keys, image: str) -> Iterator[Finding]:
    repository, _, tag = image.rpartition(":")
    remedy = f"Name rayproject/ray:{_wanted_tag()}, or install the image's versions here"
    if repository.endswith("/ray-ml"):
        yield file.error(keys, f"the images ray-ml are no longer made ({image})", remedy)
    elif not repository.endswith("rayproject/ray"):
        what = f"whether {image} holds Ray {_ray_version()} and Python {_python()} cannot be told from its name"
        yield file.hint(keys, what, "Look yourself: both must be those of this machine")
    elif not (parts := re.match(r"(\d+\.\d+\.\d+\w*)(?:-extra)?-py(\d)(\d+)(?:-|$)", tag)):
        yield file.error(keys, f"the tag {tag!r} does not pin Ray and Python", remedy)
    else:
        if parts[1] != _ray_version():
            yield file.error(keys, f"the image has Ray {parts[1]} and this machine {_ray_version()}", remedy)
        if (python := f"{parts[2]}.{parts[3]}") != _python():
            yield file.error(keys, f"the image has Python {python} and this machine {_python()}", remedy)


def _ray_version() -> str:
    return importlib.metadata.version("ray")


def _python() -> str:
    return f"{sys.version_info.major}.{sys.version_info.minor}"


def _wanted_tag() -> str:
    return f"{_ray_version()}-py{_python().replace('.', '')}-gpu"


def _check_mounts(file: ClusterFile) -> Iterator[Finding]:
    for target, source in file.table("file_mounts").items():
        if not isinstance(source, str):
            yield file.error(("file_mounts", target), "the source is no path")
        elif expand_home(source, f"file_mounts: {target}").exists():
            if target.endswith(TOKEN) and not expand_home(source, f"file_mounts: {target}").read_bytes().strip():
                yield file.error(("file_mounts", target), f"{source} is empty", f"Remove it, then `{TOKEN_COMMAND}`")
        elif target.endswith(TOKEN):
            yield file.hint(("file_mounts", target), f"{source} is not there yet", f"Make it: `{TOKEN_COMMAND}`")
        else:
            what = f"{source} is not there (looked from {Path.cwd()})"
            yield file.error(("file_mounts", target), what, "Paths are those of the folder that you call `ray up` in")


def _check_token(file: ClusterFile) -> Iterator[Finding]:
    if not any(str(target).endswith(TOKEN) for target in file.table("file_mounts")):
        what = "the machines do not get the token by which Ray's processes know each other"
        yield file.error(("file_mounts",), what, f"Add /home/ray{TOKEN}: ~{TOKEN}")
    options = str([value for key, value in file.table("docker").items() if key.endswith("run_options")])
    for key in _START:
        if "RAY_AUTH_MODE=token" not in f"{file.values.get(key, '')} {options}":
            yield file.error((key,), "Ray is started without its token", "Put RAY_AUTH_MODE=token before `ray start`")


def _check_provider(file: ClusterFile) -> Iterator[Finding]:
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
    elif (service := _service()) is not None and provider["region"] not in service.regions:
        region = str(provider["region"])
        yield file.error(("provider", "region"), f"unknown region {region!r}", suggest(region, service.regions))


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
def _service() -> _Service | None:
    try:
        session = importlib.import_module("botocore.session").get_session()
    except ImportError:
        return None
    model = session.get_service_model("ec2")
    regions = sorted(session.get_available_regions("ec2"))
    request = model.operation_model("RunInstances").input_shape
    return _Service(regions, request, list(model.shape_for("InstanceType").enum))


def _check_machines(file: ClusterFile) -> Iterator[Finding]:
    if file.table("provider").get("type") != "aws":
        return
    service = _service()
    if service is None:
        what = "boto3 is not installed: `ray up` needs it, and machines were not looked at"
        yield file.hint(("provider",), what, 'pip install "geco-ray[aws]"')
        return
    for name in _node_types(file):
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


def _node_types(file: ClusterFile) -> list[str]:
    return [str(name) for name in file.table("available_node_types")]


def command(
    path: Annotated[Path, typer.Argument(help="A cluster file for `ray up`.")] = Path("cluster.yaml"),
    as_json: Annotated[bool, typer.Option("--json", help="Print the findings as JSON.")] = False,
) -> None:
    """Check a cluster file offline, before a machine is paid for: keys, values, versions, paths, token."""
    file = read_cluster(path)
    found = check_cluster(file)
    errors = sum(finding.level == "error" for finding in found)
    if as_json:
        typer.echo(json.dumps([asdict(finding) for finding in found], ensure_ascii=False, indent=2))
    else:
        console = PlainConsole()
        for finding in found:
            place = f"{file.name}:{finding.line}" if finding.line else file.name
            text = f"{place} {finding.key}: {finding.what}. {finding.remedy}".rstrip(" .")
            text += "" if text.endswith("?") else "."
            colour = "red" if finding.level == "error" else "yellow"
            console.print(labelled(finding.level, colour, text), soft_wrap=True)
        console.print(f"{errors} errors, {len(found) - errors} hints in {file.name}")
    if errors:
        raise typer.Exit(2)
