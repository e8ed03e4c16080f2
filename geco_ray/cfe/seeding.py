"""The two ways to seed base models, changed models, factuals and helper models.

``paper`` uses the published seeds. They are consecutive numbers, and every family adds its replicate number to the base
seed, so draws are shared between base models: of 125 new-seed variants of a data set 29 are distinct networks, and 10
are themselves base models. ``independent`` derives every seed by a hash of what it is for, so no draw is shared.
"""

from __future__ import annotations

from dataclasses import dataclass

from geco_ray.errors import unknown_name
from geco_ray.seeds import derive_seed

SEEDINGS = ("paper", "independent")
BASE_SEEDS = (2026, 2027, 2028, 2029, 2030)


@dataclass(frozen=True)
class BaseKey:
    """Names a base model: data set, base seed (its number in the grid) and way of seeding.

    Raises:
        UserError: an unknown way of seeding.
    """

    dataset: str
    seed: int
    seeding: str = "paper"

    def __post_init__(self) -> None:
        if self.seeding not in SEEDINGS:
            raise unknown_name("seeding", self.seeding, SEEDINGS)

    @property
    def base_model_id(self) -> str:
        """The paper's id of the base model."""
        return f"{self.dataset}:mlp_32_32:seed_{self.seed}"

    @property
    def initial_seed(self) -> int:
        """Seed of the base model's initialisation."""
        return self.draw(self.seed, "base")

    def draw(self, paper: int, *what: str | int | float) -> int:
        """The published seed, or the hash of (data set, base seed, what it is for)."""
        if self.seeding == "paper":
            return paper
        return derive_seed(self.dataset, self.seed, *what)

    def draw32(self, paper: int, *what: str | int | float) -> int:
        """As :meth:`draw`, in 32 bits for generators that take no more."""
        return self.draw(paper, *what) % 2**32
