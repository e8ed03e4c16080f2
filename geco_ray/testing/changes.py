"""The rules of a change family."""

from __future__ import annotations

from typing import Any

import numpy as np

from geco_ray.cfe.changes.base import VARIANTS_PER_FAMILY, Family, VariantSpec
from geco_ray.cfe.mlp import Mlp
from geco_ray.cfe.seeding import BaseKey
from geco_ray.cfe.training import TrainingJob
from geco_ray.registry import Entry
from geco_ray.testing.faults import Conformance, check_options, other_random_state, random_sentence, random_states
from geco_ray.testing.toys import ToyTable, toy_table

_CHANGED = 3


def check_change_family(entry: Entry[type[Family]]) -> Conformance:
    """Hold a family to its rules on a small table: what :mod:`geco_ray.cfe.changes.base` asks of it."""
    found = Conformance(entry.name, "change family")
    if check_options(found, entry) is None:
        return found
    family = found.attempt("made without arguments", lambda: entry.target())
    if family is None:
        return found
    table = toy_table()
    before = random_states()
    specs = found.attempt("specs", lambda: family.specs(table.base.key))
    if specs is None or not found.add("specs", _specs_sentence(entry.name, specs)):
        return found
    found.add("specs are distinct", _distinct_sentence(specs))
    again = found.attempt("determinism", lambda: _with_other_state(family, table.base.key))
    if again is not None:
        told = "specs differ from call to call; derive seeds with geco_ray.seeds.derive_seed"
        found.add("determinism", None if again == specs else told)
    _check_changes(found, family, specs, table)
    found.add("global random state", random_sentence(before, random_states()))
    return found


def _with_other_state(family: Family, base: BaseKey) -> list[VariantSpec]:
    with other_random_state():
        return family.specs(base)


def _specs_sentence(name: str, specs: Any) -> str | None:
    if not isinstance(specs, list) or not specs or not all(isinstance(spec, VariantSpec) for spec in specs):
        return "specs gave no list of VariantSpec; geco_ray.cfe.changes.base.levelled_specs makes one"
    if len(specs) > VARIANTS_PER_FAMILY:
        return f"there are {len(specs)} variants; a grid takes {VARIANTS_PER_FAMILY} at most"
    if {spec.family for spec in specs} != {name}:
        return f"the specs are of the family {specs[0].family!r}; name it as it is registered, {name!r}"
    if [spec.variant for spec in specs] != list(range(len(specs))):
        return "the variants are not numbered 0, 1, ... in order; levelled_specs does that"
    return None


def _distinct_sentence(specs: list[VariantSpec]) -> str | None:
    ids = [spec.change_id for spec in specs]
    return None if len(set(ids)) == len(ids) else "two variants have one change_id; give each level and replicate once"


def _check_changes(found: Conformance, family: Family, specs: list[VariantSpec], table: ToyTable) -> None:
    kept = [array.copy() for array in _arrays(table)]
    for spec in specs[:_CHANGED]:
        made = found.attempt("change", lambda spec=spec: family.change(spec, table.base, table.pool))  # type: ignore[misc]
        if made is None:
            return
        if not found.add("change", _change_sentence(made, table)):
            return
        with other_random_state():
            second = family.change(spec, table.base, table.pool)
        told = "the same variant is another one from call to call; draw from spec.seed alone"
        if not found.add("determinism", None if _digest(made) == _digest(second) else told):
            return
    untouched = all(np.array_equal(one, other) for one, other in zip(kept, _arrays(table), strict=True))
    told = "the pool or the base model was changed; work on a copy"
    found.add("inputs untouched", None if untouched else told)


def _arrays(table: ToyTable) -> list[Any]:
    pool, model = table.pool, table.base.model
    return [pool.x, pool.train_y, pool.update_y, pool.val_x, pool.val_y, *model.weights, *model.biases]


def _change_sentence(made: Any, table: ToyTable) -> str | None:
    if not isinstance(made, TrainingJob | Mlp):
        return f"change returned a {type(made).__name__}; return a TrainingJob or the changed network (Mlp)"
    network = made.initial if isinstance(made, TrainingJob) else made
    if network.inputs != table.base.model.inputs:
        return f"the network takes {network.inputs} features and the table has {table.base.model.inputs}"
    if isinstance(made, TrainingJob) and not (made.rows.min() >= 0 and made.rows.max() < len(table.pool.x)):
        return f"a row of the job is not in the pool; rows are 0 to {len(table.pool.x) - 1}"
    if isinstance(made, TrainingJob) and not set(np.unique(made.labels).tolist()) <= {0, 1}:
        return "a label of the job is neither 0 nor 1"
    return None


def _digest(made: TrainingJob | Mlp) -> object:
    if isinstance(made, Mlp):
        return made.digest()
    return made.initial.digest(), made.rows.tobytes(), made.labels.tobytes(), repr(made.settings)
