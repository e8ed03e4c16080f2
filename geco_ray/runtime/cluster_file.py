"""Ray's own check of a cluster file, offline. It is private to Ray, so it is called here and nowhere else."""

from __future__ import annotations

import copy
import logging
from dataclasses import dataclass
from typing import Any

from geco_ray.errors import suggest

Path = tuple[str | int, ...]


@dataclass(frozen=True)
class Refusal:
    """What Ray will not take: the key (empty where it names none), the fault, and the remedy if one is known."""

    path: Path
    what: str
    remedy: str = ""


def validate_cluster(config: dict[str, Any]) -> Refusal | None:
    """Fill in Ray's defaults and check the result against Ray's schema, as ``ray up`` would; None if it passes.

    Ray names the first fault only. ``config`` is not changed and nothing is contacted.

    Raises:
        ImportError: a Ray without these functions.
    """
    from ray.autoscaler._private.util import prepare_config, validate_config

    before = logging.root.manager.disable
    logging.disable(logging.INFO)  # Ray tells what it fills in
    try:
        try:
            prepared = prepare_config(copy.deepcopy(config))
        except Exception as error:
            # The defaults stumble over what the schema would have named: let the schema speak first.
            return _refusal(validate_config, config | {"cluster_synced_files": []}) or Refusal((), _words(error))
        return _refusal(validate_config, prepared)
    finally:
        logging.disable(before)


def default_images() -> dict[str, str] | None:
    """Amazon's regions to the image that Ray starts where a file names none; None for a Ray that does not tell."""
    try:
        from ray.autoscaler._private.aws.config import DEFAULT_AMI
    except ImportError:
        return None
    return dict(DEFAULT_AMI)


def _refusal(validate: Any, config: dict[str, Any]) -> Refusal | None:
    try:
        validate(config)
    except Exception as error:
        path = tuple(getattr(error, "absolute_path", ()))
        if getattr(error, "validator", "") == "additionalProperties":
            known = list(error.schema["properties"])  # type: ignore[attr-defined]
            (unknown, *_) = [key for key in error.instance if key not in known]  # type: ignore[attr-defined]
            return Refusal((*path, unknown), f"unknown key {unknown!r}", suggest(unknown, known))
        return Refusal(path, _words(error))
    return None


def _words(error: Exception) -> str:
    text = getattr(error, "message", None) or str(error) or type(error).__name__
    return (f"missing key {text}" if isinstance(error, KeyError) else text).rstrip(".")
