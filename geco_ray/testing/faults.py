"""Faults of a component, and the checks that all kinds share."""

from __future__ import annotations

import pickle
import random
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, TypeVar

import numpy as np

from geco_ray.errors import GecoRayError
from geco_ray.registry import Entry, Options

T = TypeVar("T")


@dataclass(frozen=True)
class Fault:
    """A rule that a component breaks: the name of the ``check``, and a sentence that says what to do."""

    check: str
    sentence: str

    def __str__(self) -> str:
        return f"{self.check}: {self.sentence}"


@dataclass
class Conformance:
    """What the checks of one component found.

    Attributes:
        name, kind: the component. faults: what it breaks. passed: the checks that found nothing.
    """

    name: str
    kind: str
    faults: list[Fault] = field(default_factory=list)
    passed: list[str] = field(default_factory=list)

    def add(self, check: str, sentence: str | None) -> bool:
        """Note the outcome of a check, a sentence or None; True if it passed."""
        if sentence is None:
            self.passed.append(check)
        else:
            self.faults.append(Fault(check, sentence))
        return sentence is None

    def attempt(self, check: str, work: Callable[[], T]) -> T | None:
        """What ``work`` gives; None, and a fault, if it raises or gives nothing."""
        try:
            made = work()
        except Exception as error:
            told = str(error) if isinstance(error, GecoRayError) else f"it raised {type(error).__name__}: {error}"
            self.add(check, told)
            return None
        if made is None:
            self.add(check, "it returned nothing; return what was made")
        return made


def check_options(found: Conformance, entry: Entry[Any], given: Mapping[str, object] | None = None) -> Options | None:
    """Options of a component: complete without being given, frozen, named by their values, and fit for Ray."""
    options = found.attempt("options", lambda: entry.parse_options(dict(given or {})))
    if options is None:
        return None
    hidden = [name for name, info in type(options).model_fields.items() if info.exclude and name != "settings"]
    told = (
        f"the options {hidden} are excluded from the dump, so two values would give one result's id; leave exclude out"
    )
    found.add("options change identity", told if hidden else None)
    frozen = type(options).model_config.get("frozen")
    found.add("options are frozen", None if frozen else "options can be changed; derive them from Options as it is")
    try:
        same = pickle.loads(pickle.dumps(options)) == options
        found.add("picklable", None if same else "options come back changed from pickle")
    except Exception as error:
        told = f"Ray cannot send the options ({type(error).__name__}); define their class at the top of a module"
        found.add("picklable", told)
    return options


def random_states() -> tuple[object, ...]:
    """The states of the global generators: Python's, NumPy's, torch's."""
    import torch

    numpy = np.random.get_state()
    return random.getstate(), (numpy[1].tobytes(), numpy[2]), bytes(torch.get_rng_state().numpy())  # type: ignore[index]


@contextmanager
def other_random_state() -> Iterator[None]:
    """Global generators in another state than before, put back afterwards."""
    import torch

    before = random.getstate(), np.random.get_state(), torch.get_rng_state()
    random.seed(987)
    np.random.seed(987)
    torch.manual_seed(987)
    try:
        yield
    finally:
        random.setstate(before[0])
        np.random.set_state(before[1])
        torch.set_rng_state(before[2])


def random_sentence(before: tuple[object, ...], after: tuple[object, ...]) -> str | None:
    """Which global generator was used or set, as a sentence."""
    names = ("random", "numpy.random", "torch")
    touched = [name for name, one, other in zip(names, before, after, strict=True) if one != other]
    if not touched:
        return None
    return f"the global generator of {touched[0]} was used or set; draw from the stream that is given instead"
