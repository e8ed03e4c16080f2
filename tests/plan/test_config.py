"""Settings of a run, errors and devices: the small shared parts."""

from __future__ import annotations

import pickle

import pytest
from pydantic import ValidationError

from geco_ray.device import limit_threads, resolve_device
from geco_ray.errors import GecoRayError, LeaseError, ResourceError, StorageError, UserError, suggest
from geco_ray.plan.config import RunSettings


def test_run_settings_refuse_what_they_do_not_know() -> None:
    with pytest.raises(ValidationError):
        RunSettings.model_validate({"roots": "x"})
    with pytest.raises(ValidationError):
        RunSettings.model_validate({"executor": "threads"})
    with pytest.raises(ValidationError):
        RunSettings().pack = 3  # type: ignore[misc]


def test_exit_codes_are_those_of_the_handbook() -> None:
    codes = {kind: kind.exit_code for kind in (GecoRayError, UserError, ResourceError, LeaseError, StorageError)}
    assert list(codes.values()) == [1, 2, 3, 4, 5]


def test_a_user_error_says_where_what_found_expected_and_the_remedy() -> None:
    error = UserError("it is wrong", where="grid.yaml:3", found=[1], expected="a word", remedy="Write one")
    assert str(error) == "grid.yaml:3: it is wrong (found [1], expected a word). Write one"
    assert str(UserError("it is wrong")) == "it is wrong."
    assert str(error.at("override 'x'")).startswith("override 'x': grid.yaml:3: it is wrong")


def test_a_user_error_is_the_same_after_a_journey_between_processes() -> None:
    error = UserError("it is wrong", where="here", found=[1], expected="a word", remedy="Write one")
    again = pickle.loads(pickle.dumps(pickle.loads(pickle.dumps(error))))
    assert str(again) == str(error)
    assert again.__dict__ == error.__dict__


def test_a_huge_value_is_not_poured_over_the_screen() -> None:
    assert len(str(UserError("too much", found=list(range(10**5))))) < 300


@pytest.mark.parametrize(
    ("name", "known", "words"),
    [
        ("bert-c", ["bert_c", "ola_cea"], "Did you mean 'bert_c'?"),
        ("seedz", ["seeds", "datasets"], "Did you mean 'seeds'?"),
        ("zzz", ["a", "b"], "Known: a, b."),
    ],
)
def test_suggestions(name: str, known: list[str], words: str) -> None:
    assert suggest(name, known) == words


@pytest.mark.parametrize("name", ["gpu", "cuda:x", "CPU", "", "meta", "mps", "cpu:0:1", "cuda:-1"])
def test_an_unknown_device_is_refused(name: str) -> None:
    with pytest.raises(UserError, match="expected auto, cpu, cuda"):
        resolve_device(name)


def test_devices_that_are_there() -> None:
    import torch

    assert resolve_device("cpu").type == "cpu"
    assert resolve_device("auto").type == ("cuda" if torch.cuda.is_available() else "cpu")


def test_a_gpu_that_is_not_there_is_a_matter_of_resources() -> None:
    with pytest.raises(ResourceError, match="--device cpu"):
        resolve_device("cuda:999")


def test_threads_are_at_least_one() -> None:
    import torch

    before = torch.get_num_threads()
    try:
        limit_threads(0)
        assert torch.get_num_threads() == 1
    finally:
        torch.set_num_threads(before)
