"""Every mistake in a grid file is refused by file and line with a way out, and what is right is read as written."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from geco_ray.errors import UserError
from geco_ray.plan.config import Grid, load_grid
from geco_ray.plan.gridfile import GridText, apply_override, find_grid, read_grid

GOOD = """\
description: a grid
geco:
  datasets: [demo_a, demo_b]
  encoders: enc
  paradigms: [p]
  seeds: [0, 1]
  methods:
    - m
    - {name: n, steps: 3}
  protocol: paper
  sentences: 5
cfe:
  datasets: bc
  base_seeds: [2026, 2027]
  families: [f, g]
  variants: 3
  methods: [k]
  protocol: [paper, corrected]
  seeding: paper
"""

# (what is replaced, by what, the line that must be named, words of the message)
MUTATIONS = [
    # a typo in a key, at each level
    ("description:", "descripton:", 1, "unknown key 'descripton' Did you mean 'description'"),
    ("geco:", "gecko:", 2, "unknown key 'gecko' Did you mean 'geco'"),
    ("cfe:", "cef:", 12, "unknown key 'cef' Did you mean 'cfe'"),
    ("  datasets: [", "  dataset: [", 3, "unknown key 'geco.dataset' 'datasets'"),
    ("  encoders:", "  encoder:", 4, "unknown key 'geco.encoder' 'encoders'"),
    ("  paradigms:", "  Paradigms:", 5, "unknown key 'geco.Paradigms' 'paradigms'"),
    ("  sentences:", "  sentance:", 11, "unknown key 'geco.sentance' 'sentences'"),
    ("  base_seeds:", "  seeds:", 14, "unknown key 'cfe.seeds' 'base_seeds'"),
    ("  seeding:", "  seding:", 19, "unknown key 'cfe.seding' 'seeding'"),
    ("  variants: 3", "  variants: 3\n  pack: 25", 17, "unknown key 'cfe.pack'"),
    ("description:", "device: cpu\ndescription:", 1, "unknown key 'device'"),
    ("description:", "1: x\ndescription:", 1, "unknown key '1'"),
    ("description:", "null: x\ndescription:", 1, "unknown key 'null'"),
    # a key that is not there
    ("  datasets: [demo_a, demo_b]\n", "", 2, "key 'geco.datasets' is missing"),
    ("  protocol: paper\n  sentences", "  sentences", 2, "key 'geco.protocol' is missing"),
    ("  seeding: paper\n", "", 12, "key 'cfe.seeding' is missing"),
    ("    - {name: n, steps: 3}", "    - {nam: n, steps: 3}", 9, "geco.methods.1 needs the key 'name'"),
    # wrong types
    ("description: a grid", "description: [a, grid]", 1, "description valid string"),
    ("geco:\n", "geco: 3\nx:\n", 3, "unknown key 'x'"),
    ("  datasets: bc", "  datasets: {name: bc}", 13, "cfe.datasets.0 valid string"),
    ("[demo_a, demo_b]", "[demo_a, 7]", 3, "geco.datasets.1 valid string"),
    ("[demo_a, demo_b]", "[demo_a, true]", 3, "geco.datasets.1 valid string"),
    ("[demo_a, demo_b]", "[demo_a, null]", 3, "geco.datasets.1 valid string found 'null'"),
    ("[demo_a, demo_b]", "[[demo_a], demo_b]", 3, "geco.datasets.0 valid string"),
    ("[demo_a, demo_b]", "", 3, "geco.datasets.0 valid string"),
    ("encoders: enc", "encoders: 1.5", 4, "geco.encoders.0 valid string"),
    ("seeds: [0, 1]", "seeds: [0, '1']", 6, "geco.seeds.1 valid integer"),
    ("seeds: [0, 1]", "seeds: [0, 1.0]", 6, "geco.seeds.1 valid integer"),
    ("seeds: [0, 1]", "seeds: [0, true]", 6, "geco.seeds.1 valid integer"),
    ("seeds: [0, 1]", "seeds: {a: 1}", 6, "geco.seeds"),
    ("seeds: [0, 1]", "seeds: all", 6, "geco.seeds"),
    ("seeds: [0, 1]", "seeds: null", 6, "geco.seeds"),
    ("seeds: [0, 1]", "seeds: true", 6, "geco.seeds"),
    ("    - m\n", "    - 5\n", 8, "geco.methods.0.name valid string"),
    ("    - m\n", "    - [m]\n", 8, "geco.methods.0.name valid string"),
    ("    - m\n", "    -\n", 8, "geco.methods.0.name valid string"),
    ("protocol: paper\n", "protocol: papr\n", 10, "geco.protocol.0 'paper' or 'corrected'"),
    ("protocol: paper\n", "protocol: 1\n", 10, "geco.protocol.0"),
    ("[paper, corrected]", "[paper, true]", 18, "cfe.protocol.1"),
    ("seeding: paper", "seeding: none", 19, "cfe.seeding.0 'paper' or 'independent'"),
    ("sentences: 5", "sentences: '5'", 11, "geco.sentences valid integer"),
    ("sentences: 5", "sentences: 5.5", 11, "geco.sentences valid integer"),
    ("sentences: 5", "sentences: true", 11, "geco.sentences valid integer"),
    ("sentences: 5", "sentences: [5]", 11, "geco.sentences valid integer"),
    ("sentences: 5", "sentences: .inf", 11, "geco.sentences"),
    ("sentences: 5", "sentences: .nan", 11, "geco.sentences"),
    # out of range
    ("sentences: 5", "sentences: 0", 11, "geco.sentences greater than or equal to 1"),
    ("sentences: 5", "sentences: -5", 11, "geco.sentences greater than or equal to 1"),
    ("seeds: [0, 1]", "seeds: [0, -1]", 6, "geco.seeds.1 greater than or equal to 0"),
    ("seeds: [0, 1]", "seeds: [4294967296]", 6, "geco.seeds.0 less than or equal to 4294967295"),
    ("seeds: [0, 1]", "seeds: 0", 6, "geco.seeds count is between 1 and"),
    ("[2026, 2027]", "2026", 14, "cfe.base_seeds write [2026]"),
    ("variants: 3", "variants: 0", 16, "cfe.variants count is between 1 and"),
    ("variants: 3", "variants: -3", 16, "cfe.variants count is between 1 and"),
    ("variants: 3", "variants: 99999999999999", 16, "cfe.variants count is between 1 and"),
    ("variants: 3", "variants: [0, -1]", 16, "cfe.variants.1 greater than or equal to 0"),
    ("variants: 3", "variants: 3.0", 16, "cfe.variants"),
    ("variants: 3", "variants: true", 16, "cfe.variants"),
    # empty, and twice
    ("[demo_a, demo_b]", "[]", 3, "axis 'geco.datasets' is empty"),
    ("[f, g]", "[]", 15, "axis 'cfe.families' is empty"),
    ("variants: 3", "variants: []", 16, "axis 'cfe.variants' is empty"),
    ("[demo_a, demo_b]", "[demo_a, demo_a]", 3, "geco.datasets lists 'demo_a' twice"),
    ("[f, g]", "[f,\n    g, f]", 16, "cfe.families lists 'f' twice"),
    ("seeds: [0, 1]", "seeds: [0, 1, 0]", 6, "geco.seeds lists '0' twice"),
    ("    - {name: n, steps: 3}", "    - m", 9, "geco.methods lists 'm' twice"),
    ("[paper, corrected]", "[paper, paper]", 18, "cfe.protocol lists 'paper' twice"),
    ("  encoders: enc", "  encoders: enc\n  encoders: enc", 5, "key 'encoders' is given twice"),
    ("description: a grid", "description: a grid\ndescription: b", 2, "key 'description' is given twice"),
    ("{name: n, steps: 3}", "{name: n, steps: 3, steps: 4}", 9, "key 'steps' is given twice"),
    ("{name: n, steps: 3}", "{name: n, name: m}", 9, "key 'name' is given twice"),
    # what YAML 1.1 changes in silence
    ("steps: 3", "steps: 1e-3", 9, "YAML reads '1e-3' as text Write 1.0e-3"),
    ("steps: 3", "steps: 1.5e3", 9, "YAML reads '1.5e3' as text Write 1.5e+3"),
    ("sentences: 5", "sentences: 1e2", 11, "YAML reads '1e2' as text geco.sentences"),
    ("sentences: 5", "sentences: 010", 11, "'010' unusual"),
    ("sentences: 5", "sentences: 0x10", 11, "'0x10' unusual"),
    ("sentences: 5", "sentences: 1_000", 11, "'1_000' unusual"),
    ("sentences: 5", "sentences: 1:30", 11, "'1:30' unusual"),
    ("sentences: 5", "sentences: " + "9" * 5000, 11, "unusual"),
    ("encoders: enc", "encoders: no", 4, "YAML reads 'no' as true or false"),
    ("encoders: enc", "encoders: 2020-01-01", 4, "'2020-01-01' is read as a timestamp"),
    ("encoders: enc", "encoders: 2020-99-99", 4, "is read as a timestamp"),
    # fancy YAML
    ("seeds: [0, 1]", "seeds: &s [0, 1]", 6, "anchors 's'"),
    ("seeds: [0, 1]", "seeds: &s [0, *s]", 6, "anchors"),
    ("seeds: [0, 1]", "seeds: *other", 6, "anchors 'other'"),
    ("  encoders: enc", "  <<: {a: 1}\n  encoders: enc", 4, "unknown key 'geco.<<'"),
    ("encoders: enc", "encoders: !!python/object:os.system x", 4, "no YAML tags"),
    ("encoders: enc", "encoders: !!binary aGk=", 4, "no YAML tags"),
    ("encoders: enc", "? [a, b]\n  : enc", 4, "a key is a word"),
    ("encoders: enc", "encoders: " + "[" * 5000 + "]" * 5000, 4, "nested more than"),
    # not YAML at all
    ("  encoders: enc", "\tencoders: enc", 4, "not valid YAML tabs"),
    ("[demo_a, demo_b]", "[demo_a, demo_b", 4, "not valid YAML"),
    ("encoders: enc", "encoders: 'enc", 4, "not valid YAML"),
    ("encoders: enc", "encoders enc", 4, "not valid YAML"),
    ("  encoders: enc", " encoders: enc", 4, "not valid YAML"),
    ("encoders: enc", "encoders: a: b", 4, "not valid YAML"),
    ("encoders: enc", "encoders: @enc", 4, "not valid YAML"),
    ("cfe:\n", "---\ncfe:\n", 12, "single document"),
    ("encoders: enc", "encoders: e\x00nc", 1, "not valid YAML control characters"),
    # no benchmark left
    ("cfe:\n", "only: cef\ncfe:\n", 12, "only 'geco' or 'cfe'"),
    ("geco:\n", "geco:\nx:\n", 3, "unknown key 'x'"),
    # names that would leave the run folder
    ("description:", "name: ../../etc\ndescription:", 1, "name"),
    ("description:", "name: ''\ndescription:", 1, "name"),
    ("description:", "name: 5\ndescription:", 1, "name valid string"),
]


@pytest.fixture
def grid_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path / "my grid.yaml"


def axes(grid: Grid, benchmark: str) -> Any:
    """The axes of a benchmark that the grid has."""
    chosen = grid.axes(benchmark)
    assert chosen is not None
    return chosen


def refused(path: Path, data: bytes, overrides: tuple[str, ...] = ()) -> UserError:
    path.write_bytes(data)
    with pytest.raises(UserError) as caught:
        load_grid(str(path), overrides)
    assert [item.name for item in path.parent.iterdir()] == [path.name]  # nothing was written
    assert caught.value.remedy, caught.value
    assert caught.value.exit_code == 2
    return caught.value


def test_the_good_grid_is_good(grid_file: Path) -> None:
    grid_file.write_text(GOOD)
    grid, _ = load_grid(str(grid_file))
    assert grid.name == "my grid"
    assert axes(grid, "geco").datasets == ("demo_a", "demo_b")
    assert axes(grid, "geco").encoders == ("enc",)
    assert [(m.name, m.options) for m in axes(grid, "geco").methods] == [("m", {}), ("n", {"steps": 3})]
    assert axes(grid, "cfe").variants == (0, 1, 2)
    assert axes(grid, "cfe").protocol == ("paper", "corrected")


@pytest.mark.parametrize(("old", "new", "line", "words"), MUTATIONS, ids=[f"{m[2]}-{m[1][:30]!r}" for m in MUTATIONS])
def test_a_mistake_is_named_with_file_line_and_remedy(
    grid_file: Path, old: str, new: str, line: int, words: str
) -> None:
    assert GOOD.count(old) >= 1
    message = str(refused(grid_file, GOOD.replace(old, new, 1).encode()))
    assert message.startswith(f"{grid_file}:{line}: "), message
    for word in words.split():
        assert word in message, message
    assert len(message) < 700


@pytest.mark.parametrize("data", [b"", b"# only a comment\n", b"- geco\n- cfe\n", b"just words\n", b"5\n", b"null\n"])
def test_what_is_no_mapping_is_refused(grid_file: Path, data: bytes) -> None:
    assert "mapping" in str(refused(grid_file, data))


@pytest.mark.parametrize("data", [b"{}\n", b"description: nothing else\n", b"geco:\n", b"cfe: null\n"])
def test_a_grid_without_a_benchmark_is_refused(grid_file: Path, data: bytes) -> None:
    assert str(refused(grid_file, data)).startswith(f"{grid_file}:1: ")


def test_a_benchmark_without_axes_is_refused_even_beside_a_whole_one(grid_file: Path) -> None:
    data = GOOD[: GOOD.index("cfe:")] + "cfe:\n"
    assert "cfe has no axes" in str(refused(grid_file, data.encode()))


@pytest.mark.parametrize("bad", [b"\xff\xfe", "ü".encode("latin-1"), b"\xc3\x28"])
def test_other_encodings_are_refused_by_line(grid_file: Path, bad: bytes) -> None:
    message = str(refused(grid_file, GOOD.encode().replace(b"enc\n", b"enc" + bad + b"\n", 1)))
    assert message.startswith(f"{grid_file}:4: not UTF-8")


def test_utf16_is_refused(grid_file: Path) -> None:
    assert "UTF-8" in str(refused(grid_file, GOOD.encode("utf-16")))


@pytest.mark.parametrize(
    "data",
    [
        b"\xef\xbb\xbf" + GOOD.encode(),
        GOOD.replace("\n", "\r\n").encode(),
        GOOD.rstrip("\n").encode(),
        ("%YAML 1.1\n---\n" + GOOD).encode(),
        GOOD.replace("a grid", "a grid — ünïcode").encode(),
    ],
    ids=["bom", "crlf", "no-last-newline", "directive", "unicode"],
)
def test_harmless_differences_are_read(grid_file: Path, data: bytes) -> None:
    grid_file.write_bytes(data)
    grid, _ = load_grid(str(grid_file))
    assert axes(grid, "geco").seeds == (0, 1)


def test_quoted_and_plain_numbers_are_what_they_look_like(grid_file: Path) -> None:
    grid_file.write_text(GOOD.replace("steps: 3", "a: 1.0e-3, b: -2, c: .5, d: '1e-3', e: 'no', f: 1.5, g: true"))
    grid, _ = load_grid(str(grid_file))
    options = axes(grid, "geco").methods[1].options
    assert options == {
        "a": 0.001,
        "b": -2,
        "c": 0.5,
        "d": "1e-3",
        "e": "no",
        "f": 1.5,
        "g": True,
    }


# --- overrides ---

BAD_OVERRIDES = [
    ("geco.seeds", "KEY=VALUE"),
    ("", "KEY=VALUE"),
    ("=5", "KEY=VALUE"),
    (".seeds=5", "KEY=VALUE"),
    ("geco..seeds=5", "KEY=VALUE"),
    ("geco.=5", "KEY=VALUE"),
    ("only=", "KEY=VALUE"),
    ("geco.sentences= ", "KEY=VALUE"),
    ("geco.seeds=[0,1", "not valid YAML"),
    ("geco.seeds={a: b: c}", "not valid YAML"),
    ("geco.seed=[0]", "unknown key 'geco.seed'"),
    ("gecko.seeds=[0]", "unknown key 'gecko'"),
    ("seeds=[0]", "unknown key 'seeds'"),
    ("geco.seeds.first=0", "geco.seeds has no keys below it"),
    ("geco.methods.0.steps=3", "geco.methods has no keys below it"),
    ("description.more.more=3", "description has no keys below it"),
    ("geco.seeds=[]", "axis 'geco.seeds' is empty"),
    ("geco.seeds=[1,1]", "lists '1' twice"),
    ("geco.seeds=[0,-1]", "geco.seeds.1"),
    ("geco.sentences=1e2", "as text"),
    ("geco.methods=[{name: m, eps: 1e-3}]", "as text"),
    ("geco.methods=[{name: m, name: n}]", "given twice"),
    ("geco.methods=[&a m]", "anchors"),
    ("geco.sentences=true", "geco.sentences"),
    ("only=both", "only"),
    ("geco=null", "geco has no axes"),
    ("geco={}", "is missing"),
    ("protocol=paper", "unknown key 'protocol'"),
]


@pytest.mark.parametrize(("override", "words"), BAD_OVERRIDES)
def test_a_bad_override_is_named(grid_file: Path, override: str, words: str) -> None:
    message = str(refused(grid_file, GOOD.encode(), (override,)))
    assert message.startswith(f"override {override!r}: "), message
    assert words in message


def test_overrides_set_replace_and_select(grid_file: Path) -> None:
    grid_file.write_text(GOOD)
    grid, _ = load_grid(str(grid_file), ["geco.datasets=[x]", "geco.sentences=null", "only=geco", "description=a=b"])
    assert axes(grid, "geco").datasets == ("x",)
    assert axes(grid, "geco").sentences is None
    assert grid.axes("cfe") is None
    assert grid.axes("geco") is not None
    assert grid.description == "a=b"


def test_only_of_what_the_grid_lacks_is_refused(grid_file: Path) -> None:
    text = GOOD[GOOD.index("cfe:") :]
    assert "only=geco" in str(refused(grid_file, text.encode(), ("only=geco",)))


def test_the_last_of_two_overrides_counts_and_is_the_one_named() -> None:
    grid = GridText("f", {"geco": {"seeds": [0]}})
    apply_override(grid, "geco.seeds=[1]")
    apply_override(grid, "geco.seeds=[2]")
    assert grid.values == {"geco": {"seeds": [2]}}
    assert grid.place(("geco", "seeds", 0)) == "override 'geco.seeds=[2]'"


# --- finding a grid ---


def test_a_grid_in_the_working_folder_comes_before_the_shipped_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    shipped = find_grid("demo")
    assert shipped.is_file()
    (tmp_path / "grids").mkdir()
    (tmp_path / "grids" / "demo.yaml").write_text(GOOD)
    assert find_grid("demo").resolve() == (tmp_path / "grids" / "demo.yaml").resolve()


@pytest.mark.parametrize("name", ["dmeo", "full.yaml", "./demo", "a/b", "x" * 400, "x" * 400 + ".yaml", "", "nul\0"])
def test_an_unknown_grid_is_refused(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UserError) as caught:
        find_grid(name)
    assert caught.value.remedy


def test_a_misspelt_grid_gets_a_suggestion() -> None:
    with pytest.raises(UserError, match="Did you mean 'demo'"):
        find_grid("dmo")


def test_a_folder_named_like_a_grid_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="cannot read"):
        read_grid(tmp_path)


@pytest.mark.parametrize("name", ["demo", "geco", "cfe", "full"])
def test_the_shipped_grids_are_valid(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    grid, _ = load_grid(name)
    assert grid.name == name
