"""``geco-ray cluster-check``: everything about a cluster file that can be known before a machine is paid for.

Ray checks the keys of a file when it is used, and not the values: a wrong machine type, a misspelt region, a folder
that is not there or an image with another Ray come to light minutes later, on a machine that costs money. This looks at
all of them offline: with Ray's schema, with what boto3 knows of EC2, and with what is installed here.
"""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from geco_ray.cli.cluster_checks.aws import check_machines, check_profiles, check_provider
from geco_ray.cli.cluster_checks.file import ClusterFile, Finding, read_cluster
from geco_ray.cli.cluster_checks.general import check_images, check_mounts, check_schema, check_token, check_torch
from geco_ray.cli.output import PlainConsole, labelled


def check_cluster(file: ClusterFile) -> list[Finding]:
    """All findings, faults first; paths are looked for from the current folder, as ``ray up`` does."""
    checks = (
        check_schema, check_images, check_mounts, check_token, check_torch,
        check_provider, check_machines, check_profiles,
    )  # fmt: skip
    found = [finding for check in checks for finding in check(file)]
    return sorted(found, key=lambda finding: finding.level != "error")


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
