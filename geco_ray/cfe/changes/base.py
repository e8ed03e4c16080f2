"""What a family of changed models is, and the plain iterator over its variants.

A family tells its 25 variants (:meth:`Family.specs`, cheap, needs no model) and how one of them is made from a base
model and data (:meth:`Family.change`): either a training job or, if nothing is trained, the changed network itself.
A new family is one file in this folder::

    @FAMILIES.register("half", title="Half the data")
    class Half:
        def specs(self, base): ...
        def change(self, spec, base, pool): ...
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from geco_ray.cfe.base_model import BaseModel
from geco_ray.cfe.mlp import Mlp
from geco_ray.cfe.seeding import BaseKey
from geco_ray.cfe.training import Pool, TrainingJob, train_stacked
from geco_ray.errors import UserError
from geco_ray.registry import Registry

if TYPE_CHECKING:
    import torch

VARIANTS_PER_FAMILY = 25
# The order of the families in a bank of 200 ("Robust to Which Model Change?", Table 2); further ones follow by name.
ORDER = (
    "seed",
    "bootstrap",
    "deletion",
    "data_addition",
    "label_update",
    "training_config",
    "architecture",
    "bounded_parameter",
)


@dataclass(frozen=True)
class VariantSpec:
    """One variant: its number in the family (0..24), level and replicate, seed, and the paper's ``change_id``.

    ``change_id`` is unique only together with the base model. ``draw`` names the random draw behind the variant: two
    variants of different base models with one draw are not independent.
    """

    family: str
    variant: int
    level: str
    replicate: int
    seed: int
    change_id: str
    draw: str


@dataclass(frozen=True, eq=False)
class Variant:
    """A changed model; ``epochs`` and ``best_epoch`` are 0 where nothing was trained."""

    spec: VariantSpec
    model: Mlp
    epochs: int
    best_epoch: int


class Family(Protocol):
    """A family of changed models; registered as a class that is made without arguments."""

    def specs(self, base: BaseKey) -> list[VariantSpec]:
        """All variants of a base model, in order; needs neither model nor data."""
        ...

    def change(self, spec: VariantSpec, base: BaseModel, pool: Pool) -> TrainingJob | Mlp:
        """How to train the variant, or the variant itself if nothing is trained."""
        ...


FAMILIES: Registry[type[Family]] = Registry("change family", "geco_ray.cfe.changes")


def family_names() -> list[str]:
    """All families in the order of the bank."""
    names = FAMILIES.names()
    known = [name for name in ORDER if name in names]
    return known + [name for name in names if name not in ORDER]


def variant_specs(family: str, base: BaseKey, variants: Sequence[int] | None = None) -> list[VariantSpec]:
    """The specs of the given variants (all by default) of a family.

    Raises:
        UserError: an unknown family or a variant that it does not have.
    """
    specs = FAMILIES.get(family).target().specs(base)
    for variant in variants or ():
        if not 0 <= variant < len(specs):
            raise UserError(f"family {family!r} has no variant {variant}", expected=f"0 to {len(specs) - 1}")
    return specs if variants is None else [specs[variant] for variant in variants]


def make_variants(
    specs: Sequence[VariantSpec], base: BaseModel, pool: Pool, device: torch.device | str = "cpu"
) -> list[Variant]:
    """Make the variants of a base model, of one or several families; all that is trained is trained as one stack."""
    families = {name: FAMILIES.get(name).target() for name in {spec.family for spec in specs}}
    changes = [families[spec.family].change(spec, base, pool) for spec in specs]
    trained = iter(train_stacked([change for change in changes if isinstance(change, TrainingJob)], pool, device))
    variants = []
    for spec, change in zip(specs, changes, strict=True):
        if isinstance(change, Mlp):
            variants.append(Variant(spec, change, 0, 0))
        else:
            result = next(trained)
            variants.append(Variant(spec, result.model, result.epochs, result.best_epoch))
    return variants


def iter_variants(
    family: str, base: BaseModel, pool: Pool, device: torch.device | str = "cpu", *, at_once: int = VARIANTS_PER_FAMILY
) -> Iterator[Variant]:
    """The variants of a family one after another, made ``at_once`` at a time: for use with no grid around it."""
    specs = variant_specs(family, base.key)
    for start in range(0, len(specs), at_once):
        yield from make_variants(specs[start : start + at_once], base, pool, device)


def levelled_specs(family: str, seeds: Sequence[tuple[str, int, int]]) -> list[VariantSpec]:
    """Specs from (level, replicate, seed) with the paper's ``family:level:rR:seedS`` ids, numbered in order."""
    return [
        VariantSpec(family, number, level, r, seed, f"{family}:{level}:r{r}:seed{seed}", f"{level}:{seed}")
        for number, (level, r, seed) in enumerate(seeds)
    ]
