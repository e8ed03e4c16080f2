"""Asking each node of a cluster, before it gets work, whether it can do any: one small actor per node."""

from __future__ import annotations

import os
import secrets
import socket
import time
from collections.abc import Mapping
from typing import Any

from geco_ray.errors import ResourceError, StorageError
from geco_ray.ledger import Ledger
from geco_ray.runtime.installed import facts_here

_SECONDS = 30.0


def joined(address: str) -> str:
    """The sentence that says which cluster a run has joined, and what it has."""
    import ray

    nodes = [node for node in ray.nodes() if node["Alive"]]
    has = ray.cluster_resources()
    found = ray.get_runtime_context().gcs_address
    given = "" if address == found else f" (given as {address!r})"
    return (
        f"joined the Ray cluster at {found}{given}: nodes {len(nodes)}, CPUs {has.get('CPU', 0):g}, "
        f"GPUs {has.get('GPU', 0):g}"
    )


def probe_nodes(root: str) -> int:
    """Let every node that has CPUs or GPUs for work tell what it is and whether it sees the run folder.

    Nodes that an autoscaler brings later are not asked.

    Args:
        root: the run folder or bucket, as the workers will be given it.

    Returns:
        How many nodes there are.

    Raises:
        ResourceError: a node does not answer within 30 s, or has another Python, Ray, geco_ray or other plug-ins.
        StorageError: a node does not see the folder.
    """
    import ray

    places = {
        node["NodeID"]: f"{node['NodeManagerAddress']} ({node['NodeManagerHostname']})"
        for node in ray.nodes()
        if node["Alive"] and (node["Resources"].get("CPU", 0) or node["Resources"].get("GPU", 0))
    }
    storage, word = Ledger(root).storage, secrets.token_hex(8)
    # Named like a file that was being written, so that one that is left by a kill is swept.
    marker = f".probe.{socket.gethostname()}.{os.getpid()}.{time.monotonic_ns()}.tmp"
    storage.write(marker, word.encode())
    try:
        for node, facts in _answers(list(places), root, marker).items():
            refuse(places[node], facts, facts_here() | {"marker": word})
    finally:
        storage.remove(marker)
    return len(places)


def _answers(nodes: list[str], root: str, marker: str) -> dict[str, dict[str, Any]]:
    """What each node says of itself; ``{"error": ...}`` where nothing came."""
    import ray
    from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

    probe = ray.remote(num_cpus=0, max_restarts=0)(_probe_class())
    actors = {
        node: probe.options(scheduling_strategy=NodeAffinitySchedulingStrategy(node, soft=False)).remote()
        for node in nodes
    }
    asked = {node: actor.look.remote(root, marker) for node, actor in actors.items()}
    answered, _ = ray.wait(list(asked.values()), num_returns=len(asked), timeout=_SECONDS) if asked else ([], [])
    found: dict[str, dict[str, Any]] = {}
    for node, reference in asked.items():
        try:
            found[node] = ray.get(reference) if reference in answered else {"error": f"no answer within {_SECONDS:g} s"}
        except ray.exceptions.RayError as error:
            found[node] = {"error": " ".join(str(error).split())[:500]}
    for actor in actors.values():
        ray.kill(actor)
    return found


def _probe_class() -> type:
    """Made inside a function, so that it travels as a whole: a node that lacks geco_ray must be able to say so."""

    class Probe:
        def look(self, root: str, marker: str) -> dict[str, Any]:
            try:
                from geco_ray.ledger import Ledger
                from geco_ray.runtime.installed import facts_here
            except ImportError as error:
                return {"error": f"it cannot import geco_ray: {error}"}
            facts = facts_here()
            try:
                return facts | {"marker": Ledger(root).storage.read(marker).decode()}
            except Exception as error:
                return facts | {"marker": f"{type(error).__name__}: {error}"}

    return Probe


def refuse(place: str, facts: Mapping[str, Any], expected: Mapping[str, Any]) -> None:
    """Raise what is wrong with a node.

    Args:
        place: its address. facts: what it said. expected: what it should have said.

    Raises:
        ResourceError: it gave no answer, or another version. StorageError: it does not see the run folder.
    """
    if "error" in facts:
        raise ResourceError(
            f"the node {place} cannot work: {facts['error']}. See that it holds the cluster's ~/.ray/auth_token, "
            "reaches this machine, and has geco_ray installed; then run the same command again."
        )
    for name, value in expected.items():
        if name != "marker" and facts[name] != value:
            raise ResourceError(
                f"the node {place} has another {name} than this machine (found {facts[name] or 'none'!r}, expected "
                f"{value or 'none'!r}). Install the same there; then run the same command again."
            )
    if facts["marker"] != expected["marker"]:
        raise StorageError(
            f"the node {place} does not see the run folder ({facts['marker']}). Give --root a folder that all nodes "
            "share under one path, or s3://BUCKET/PATH; finished cells are kept."
        )
