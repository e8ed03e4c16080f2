"""A grid becomes the cells it names, each once, and every wrong name is refused with its place."""

from __future__ import annotations

import dataclasses
import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from geco_ray.cells import Cell
from geco_ray.errors import UserError
from geco_ray.experiments.cfe.cells import ValidityCell, VariantCell
from geco_ray.experiments.geco.cells import ExplainCell, ScoreCell, TrainCell
from geco_ray.geco import encoders
from geco_ray.geco.attribution.base import ATTRIBUTIONS
from geco_ray.geco.encoders import EncoderSource
from geco_ray.plan.benchmark import stages
from geco_ray.plan.config import load_grid
from geco_ray.plan.expand import expand, packs

GRID = """\
geco:
  datasets: [demo_binary_all, demo_binary_subj]
  encoders: toy
  paradigms: [OLA-CEA, bert_c]
  seeds: [0, 1, 2]
  methods:
    - uniform_random
    - Saliency
    - name: integrated_gradients
      n_steps: 7
  protocol: [paper, corrected]
cfe:
  datasets: breast_cancer
  base_seeds: [2026, 2027]
  families: [seed, bounded_parameter]
  variants: 3
  methods: [kdtree, Wachter]
  protocol: paper
  seeding: [paper, independent]
"""


def toy_encoder(name: str) -> EncoderSource:
    """Any name, as an encoder of the hub; all share one tokenizer."""
    if name == "none":
        raise UserError("unknown encoder 'none'", remedy="Give another")
    if name.startswith("/"):
        return EncoderSource(name, "folder", name, "", f"content of {Path(name).name}", "tokenizer")
    return EncoderSource(name, "hub", name, "rev", f"{name}@rev", "tokenizer")


@pytest.fixture(autouse=True)
def no_files(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(encoders, "resolve_encoder", toy_encoder)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "g.yaml").write_text(GRID)


def cells_of(*overrides: str, name: str = "./g.yaml") -> list[Cell]:
    grid, text = load_grid(name, overrides)
    return expand(grid, text)


def refused(*overrides: str) -> str:
    with pytest.raises(UserError) as caught:
        cells_of(*overrides)
    assert caught.value.remedy or caught.value.expected, caught.value
    return str(caught.value)


def test_the_grid_has_the_cells_one_counts_by_hand() -> None:
    cells = cells_of()
    counted = Counter(cell.stage for cell in cells)
    models = 2 * 2 * 2 * 3  # tasks, paradigms, protocols, seeds
    base = 2 * 2  # base seeds, seedings
    assert counted == {
        "train": models,
        "explain": models * 3,
        "score": models * 3,
        "models": base + base * 2 * 3,
        "counterfactuals": base * 2,
        "validity": base * 2 * 2,
    }


def test_cells_are_unique_and_come_after_what_they_are_computed_from() -> None:
    cells = cells_of()
    assert len({cell.id for cell in cells}) == len(cells)
    seen: set[str] = set()
    for cell in cells:
        assert all(parent.id in seen for parent in cell.upstream()), cell.title
        seen.add(cell.id)
    assert list(dict.fromkeys(cell.stage for cell in cells)) == list(stages())


def test_every_explain_cell_has_one_score_cell() -> None:
    cells = cells_of("only=geco")
    explained = [cell.id for cell in cells if isinstance(cell, ExplainCell)]
    assert [cell.explained.id for cell in cells if isinstance(cell, ScoreCell)] == explained


def test_expansion_repeats_itself_and_the_order_of_an_axis_changes_no_id() -> None:
    ids = {cell.id for cell in cells_of()}
    assert [cell.id for cell in cells_of()] == [cell.id for cell in cells_of()]
    assert {cell.id for cell in cells_of("geco.seeds=[2,0,1]", "cfe.families=[bounded_parameter,seed]")} == ids


def test_names_and_titles_and_given_defaults_are_the_same_cells() -> None:
    ids = {cell.id for cell in cells_of("only=geco")}
    same = "geco.methods=[Uniform random, saliency, {name: Integrated Gradients, n_steps: 7}]"
    assert {cell.id for cell in cells_of("only=geco", same, "geco.paradigms=[ola_cea, BERT-C]")} == ids
    plain = {cell.id for cell in cells_of("only=geco", "geco.methods=[integrated_gradients]")}
    method = ATTRIBUTIONS.get("integrated_gradients").parse_options()
    given = json.dumps({"name": "integrated_gradients", **method.model_dump(mode="json")})
    assert {cell.id for cell in cells_of("only=geco", f"geco.methods=[{given}]")} == plain


def test_one_axis_holds_a_paradigm_at_several_rates_epochs_and_batches() -> None:
    choices = "[bert_c, {name: BERT-C, learning_rate: 0.001}, {name: bert_c, epochs: 3, batch_size: 8}]"
    models = [cell for cell in cells_of(f"geco.paradigms={choices}") if isinstance(cell, TrainCell)]
    names = ("learning_rate", "epochs", "batch_size")
    counted = Counter(tuple(getattr(cell.paradigm_options, name) for name in names) for cell in models)
    assert counted == dict.fromkeys([(0.01, 20, 32), (0.001, 20, 32), (0.01, 3, 8)], 2 * 2 * 3)


def test_only_adds_no_cell_and_changes_none() -> None:
    both, geco, cfe = ({cell.id for cell in cells_of(*extra)} for extra in ((), ("only=geco",), ("only=cfe",)))
    assert geco | cfe == both
    assert not geco & cfe


@pytest.mark.parametrize(
    ("override", "changed"),
    [
        ("geco.seeds=[0,1,2,3]", {"train", "explain", "score"}),
        ("geco.methods=[uniform_random,saliency,input_x_gradient]", {"explain", "score"}),
        ("geco.methods=[{name: integrated_gradients, n_steps: 8}]", {"explain", "score"}),
        ("geco.sentences=5", {"explain", "score"}),
        ("cfe.base_seeds=[2026,2027,2028]", {"models", "counterfactuals", "validity"}),
        ("cfe.families=[seed,bounded_parameter,architecture]", {"models", "validity"}),
        ("cfe.methods=[kdtree,wachter,rnce]", {"counterfactuals", "validity"}),
        ("cfe.variants=4", {"models", "validity"}),
        ("cfe.protocol=[paper,corrected]", {"counterfactuals", "validity"}),
        ("description=another", set()),
        ("name=another", set()),
    ],
)
def test_a_change_of_an_axis_adds_cells_only_where_it_must(override: str, changed: set[str]) -> None:
    before = {cell.id for cell in cells_of()}
    assert {cell.stage for cell in cells_of(override) if cell.id not in before} == changed


def test_a_model_of_the_tokenizer_alone_is_one_for_all_encoders_that_share_it() -> None:
    cells = [cell for cell in cells_of("only=geco", "geco.encoders=[toy, other]") if isinstance(cell, TrainCell)]
    by_paradigm = Counter(cell.paradigm for cell in cells)
    assert by_paradigm["bert_c"] == 2 * by_paradigm["ola_cea"]


def test_where_a_folder_lies_is_no_part_of_an_id() -> None:
    here, there = (
        {cell.id for cell in cells_of("only=geco", f"geco.encoders={place}/enc")} for place in ("/a", "/b/c")
    )
    assert here == there
    assert not any("/a" in json.dumps(cell.params()) for cell in cells_of("only=geco", "geco.encoders=/a/enc"))


# --- wrong names ---


@pytest.mark.parametrize(
    ("override", "words"),
    [
        ("geco.datasets=[demo_binary_al]", "geco.datasets: unknown data set Did you mean 'demo_binary_all'"),
        ("geco.datasets=[compas]", "geco.datasets: unknown data set 'compas'"),
        ("geco.encoders=none", "geco.encoders: unknown encoder 'none'"),
        ("geco.paradigms=[bert_d]", "geco.paradigms: unknown 'bert_d' Did you mean 'bert_c'"),
        ("geco.methods=[salience]", "geco.methods: unknown 'salience' Did you mean 'saliency'"),
        ("geco.methods=[{name: saliency, n_steps: 3}]", "geco.methods: unknown option 'n_steps' of 'saliency'"),
        ("geco.methods=[{name: integrated_gradients, n_step: 3}]", "geco.methods: 'n_step' Did you mean 'n_steps'"),
        ("geco.methods=[{name: integrated_gradients, n_steps: '3'}]", "geco.methods: 'n_steps' valid integer"),
        ("geco.methods=[{name: integrated_gradients, n_steps: true}]", "geco.methods: 'n_steps' valid integer"),
        ("geco.methods=[{name: integrated_gradients, n_steps: -3}]", "geco.methods: 'n_steps' greater"),
        ("geco.methods=[{name: integrated_gradients, n_steps: 0}]", "geco.methods: 'n_steps' greater"),
        ("geco.methods=[saliency, Saliency]", "geco.methods lists 'saliency' twice"),
        ("geco.methods=[saliency, {name: SALIENCY}]", "geco.methods lists 'saliency' twice"),
        ("geco.paradigms=[BERT-C, bert_c]", "geco.paradigms lists 'bert_c' twice"),
        ("geco.paradigms=[bert_c, {name: BERT-C, learning_rate: 0.01}]", "geco.paradigms lists 'bert_c' twice"),
        ("geco.paradigms=[{name: bert_c, learning_rates: 1}]", "geco.paradigms: 'learning_rates' 'learning_rate'"),
        ("geco.paradigms=[{name: bert_c, learning_rate: 0}]", "geco.paradigms: 'learning_rate' greater"),
        ("geco.paradigms=[{name: ola_cea, dropout: 0.1}]", "geco.paradigms: unknown option 'dropout' of 'ola_cea'"),
        ("cfe.datasets=[breast_cancr]", "cfe.datasets: unknown data set Did you mean 'breast_cancer'"),
        ("cfe.families=[sed]", "cfe.families: unknown change family Did you mean 'seed'"),
        ("cfe.methods=[kdtre]", "cfe.methods: unknown counterfactual method Did you mean 'kdtree'"),
        ("cfe.methods=[{name: kdtree, k: 3}]", "cfe.methods: unknown option 'k' of 'kdtree'"),
        ("cfe.variants=26", "cfe.variants: variant 25 does not exist numbers from 0 to 24"),
        ("cfe.variants=[0,30]", "cfe.variants: variant 30 does not exist"),
    ],
)
def test_a_wrong_name_is_refused_with_its_place(override: str, words: str, tmp_path: Path) -> None:
    message = refused(override)
    assert message.startswith(f"override {override!r}: "), message
    for word in words.split():
        assert word in message, message
    assert [path.name for path in tmp_path.iterdir()] == ["g.yaml"]


@pytest.mark.parametrize(
    ("old", "new", "line"),
    [
        ("demo_binary_subj]", "demo_binary_sub]", 2),
        ("encoders: toy", "encoders: none", 3),
        ("bert_c]", "bertc2]", 4),
        ("    - Saliency", "    - Salience", 8),
        ("n_steps: 7", "n_step: 7", 10),
        ("n_steps: 7", "n_steps: x", 10),
        ("- name: integrated_gradients", "- name: integrated", 9),
        ("bounded_parameter]", "\n    bounded_parameters]", 16),
        ("variants: 3", "variants: [1, 2,\n    99]", 17),
    ],
)
def test_a_wrong_name_in_the_file_is_refused_by_line(old: str, new: str, line: int, tmp_path: Path) -> None:
    (tmp_path / "g.yaml").write_text(GRID.replace(old, new, 1))
    assert refused().startswith(f"g.yaml:{line}: ")


# --- packs ---


def test_packs_hold_every_cell_once_and_only_what_belongs_together() -> None:
    cells = cells_of()
    for size in (1, 2, 25):
        made = packs(cells, size)
        assert sorted(cell.id for pack in made for cell in pack) == sorted(cell.id for cell in cells)
        assert max(map(len, made)) <= size
        for pack in made:
            assert len({(cell.stage, cell.KIND) for cell in pack}) == 1
            if isinstance(pack[0], VariantCell):
                assert len({(cell.base.id, cell.family) for cell in pack}) == 1  # type: ignore[attr-defined]


def test_twenty_five_variants_are_one_trial_or_twenty_five() -> None:
    variants = [cell for cell in cells_of("cfe.variants=25", "cfe.seeding=paper") if isinstance(cell, VariantCell)]
    assert len(variants) == 100
    assert len(packs(variants, 25)) == 4
    assert len(packs(variants, 1)) == 100
    assert [len(pack) for pack in packs(variants[:25], 10)] == [10, 10, 5]


def test_settings_of_one_method_come_in_one_pack_and_other_methods_alone() -> None:
    methods = "cfe.methods=[robx_balanced, kdtree, robx_robust]"
    made = packs([cell for cell in cells_of("only=cfe", methods) if cell.stage == "counterfactuals"], 25)
    together = sorted(sorted(cell.method for cell in pack) for pack in made)  # type: ignore[attr-defined]
    assert together == [["kdtree"]] * 4 + [["robx_balanced", "robx_robust"]] * 4
    assert all(len({cell.base.id for cell in pack}) == 1 for pack in made)  # type: ignore[attr-defined]


def test_the_size_of_packs_is_in_no_cell() -> None:
    names = {item.name for cell in cells_of() for item in dataclasses.fields(cell)}
    assert not names & {"pack", "size", "device", "host", "executor"}


def test_a_validity_cell_hangs_on_its_counterfactuals_and_all_variants_of_the_family() -> None:
    for cell in cells_of("only=cfe"):
        if isinstance(cell, ValidityCell):
            assert [variant.variant for variant in cell.variants] == [0, 1, 2]
            assert {variant.family for variant in cell.variants} == {cell.family}
            assert {variant.base.id for variant in cell.variants} == {cell.counterfactuals.base.id}


# --- what planning may import ---


def test_planning_imports_neither_torch_nor_ray_nor_what_hangs_on_them(
    assert_imports_nothing: Callable[..., str],
) -> None:
    code = (
        "from geco_ray.geco import encoders\n"
        "from geco_ray.geco.encoders import EncoderSource\n"
        "encoders.resolve_encoder = lambda name: EncoderSource(name, 'hub', name, 'r', name, 't')\n"
        "from geco_ray.plan.config import load_grid\n"
        "from geco_ray.plan.expand import expand\n"
        "from geco_ray.ledger import Ledger\n"
        "from geco_ray.plan.remaining import make_plan\n"
        "cells = expand(*load_grid('./g.yaml'))\n"
        "make_plan(cells, Ledger('nowhere'), 25)\n"
        "print(len(cells))"
    )
    heavy = ["torch", "ray", "transformers", "captum", "lime", "sklearn", "scipy", "matplotlib"]
    assert assert_imports_nothing(code, heavy) == str(len(cells_of()))


@pytest.mark.parametrize("name", ["geco", "full"])
def test_the_benchmarks_grid_has_the_models_of_the_paper(name: str, data_dir: Path) -> None:
    grid, text = load_grid(name, ["only=geco"])
    models = [cell for cell in expand(grid, text, data_dir) if isinstance(cell, TrainCell)]
    assert len(models) == 4 * (5 * 5 + 1)
    assert {cell.paradigm for cell in models if cell.seed is None} == {"bert_zs"}
