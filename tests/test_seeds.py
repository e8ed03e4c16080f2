"""Random streams are named by the work and by nothing else."""

from __future__ import annotations

import hashlib

import numpy as np
import pytest

from geco_ray.seeds import derive_seed, numpy_stream, torch_stream


def test_the_seed_is_what_the_docstring_says() -> None:
    digest = hashlib.sha256(b'["bootstrap",2026,null,0.5]').digest()
    assert derive_seed("bootstrap", 2026, None, 0.5) == int.from_bytes(digest[:8], "big") // 2


def test_seeds_fit_every_generator_and_differ() -> None:
    seeds = [derive_seed("a", number) for number in range(2000)]
    assert len(set(seeds)) == 2000
    assert all(0 <= seed < 2**63 for seed in seeds)


def test_parts_do_not_run_together_and_types_count() -> None:
    names = [
        ("ab", "c"),
        ("a", "bc"),
        ("a", "b", "c"),
        ("abc",),
        (1, 2),
        (12,),
        ("1", 2),
        (None,),
        ("null",),
        (),
        ("",),
    ]
    assert len({derive_seed(*parts) for parts in names}) == len(names)


def test_what_json_cannot_name_is_refused() -> None:
    with pytest.raises(ValueError, match="JSON"):
        derive_seed(float("nan"))
    with pytest.raises(TypeError):
        derive_seed(np.int64(3))  # type: ignore[arg-type]


def test_streams_repeat_and_leave_the_global_state_alone() -> None:
    import torch

    np.random.seed(7)
    before_numpy, before_torch = np.random.get_state()[1].copy(), torch.get_rng_state().clone()  # type: ignore[union-attr]
    first, again, other = (numpy_stream("x", n).random(5) for n in (1, 1, 2))
    assert np.array_equal(first, again)
    assert not np.array_equal(first, other)
    one, two = (torch.rand(5, generator=torch_stream("x", 1)) for _ in range(2))
    assert torch.equal(one, two)
    assert np.array_equal(before_numpy, np.random.get_state()[1])
    assert torch.equal(before_torch, torch.get_rng_state())


def test_pinned_draws() -> None:
    assert derive_seed("demo", 0) == PINNED_SEED
    assert numpy_stream("demo", 0).integers(0, 1000, 3).tolist() == PINNED_DRAWS


PINNED_SEED = 1577648503289177072
PINNED_DRAWS = [623, 535, 651]
