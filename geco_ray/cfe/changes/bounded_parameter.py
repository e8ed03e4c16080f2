"""Parameter perturbation: every weight moves a little, none by more than a radius."""

from __future__ import annotations

from geco_ray.cfe.base_model import BaseModel
from geco_ray.cfe.changes.base import FAMILIES, VariantSpec
from geco_ray.cfe.mlp import Mlp
from geco_ray.cfe.seeding import BaseKey
from geco_ray.cfe.training import Pool
from geco_ray.registry import Profile

RADII = {f"linf_{radius:g}": radius for radius in (0.001, 0.005, 0.01, 0.02, 0.05)}
REPLICATES = 5


@FAMILIES.register("bounded_parameter", title="Parameter perturb.", profile=Profile(order=8, short="Perturb."))
class BoundedParameter:
    """Five random directions at each of five radii of the largest parameter change; nothing is trained."""

    def specs(self, base: BaseKey) -> list[VariantSpec]:
        """Five directions per radius."""
        specs: list[VariantSpec] = []
        for level, radius in RADII.items():
            for r in range(REPLICATES):
                paper = base.seed + 80_000 + round(radius * 1e6) + r
                seed = base.draw(paper, "bounded_parameter", level, r)
                change_id = f"bounded_parameter:{level}:r{r}"
                draw = f"{level}:{seed}"
                specs.append(VariantSpec("bounded_parameter", len(specs), level, r, seed, change_id, draw))
        return specs

    def change(self, spec: VariantSpec, base: BaseModel, pool: Pool) -> Mlp:
        """The base model moved in a random direction; the largest component of the move is the radius."""
        return perturb(base.model, RADII[spec.level], spec.seed)


def perturb(model: Mlp, radius: float, seed: int) -> Mlp:
    """Add a direction of independent U(-1, 1) entries, drawn layer by layer (weight, bias), scaled to the radius."""
    import torch

    generator = torch.Generator(device="cpu").manual_seed(seed)
    pairs = [pair for layer in zip(model.weights, model.biases, strict=True) for pair in layer]
    drawn = [torch.empty(array.shape).uniform_(-1, 1, generator=generator) for array in pairs]
    scale = radius / max(float(direction.abs().max()) for direction in drawn)
    moved = [array + (direction * scale).numpy() for array, direction in zip(pairs, drawn, strict=True)]
    return Mlp(tuple(moved[0::2]), tuple(moved[1::2]))
