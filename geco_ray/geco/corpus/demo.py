"""The demo tasks: a small corpus written for this package, built by the same code as any other labelling."""

from __future__ import annotations

from functools import cache
from importlib import resources
from typing import cast

from geco_ray.geco.corpus.builder import Kind, build_task
from geco_ray.geco.corpus.labelling import Labelling, parse_labelling
from geco_ray.geco.task import Task

CORPUS = "demo_corpus.yaml"


@cache
def demo_labelling() -> Labelling:
    """The packaged labelling."""
    path = resources.files("geco_ray.geco.corpus") / CORPUS
    return parse_labelling(path.read_bytes(), str(path))


@cache
def demo_task(name: str) -> Task:
    """A demo task by its name, ``demo_{binary,non_binary}_{all,subj}``.

    Raises:
        UserError: the name is of another form.
    """
    kind, _, version = name.removeprefix("demo_").rpartition("_")
    return build_task(demo_labelling(), cast(Kind, kind), version, name=name)
