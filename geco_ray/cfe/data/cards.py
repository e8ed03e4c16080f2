"""Data set cards: what a table is, where it comes from and how it becomes a binary classification task.

A card is a small, typed description. Four are built in; any other CSV becomes a data set with a card of its own
(YAML, same keys). Importing this module needs neither torch nor scikit-learn.
"""

from __future__ import annotations

import hashlib
import json
import re
from pathlib import Path

from pydantic import Field, ValidationError, field_validator, model_validator

from geco_ray.errors import UserError, suggest
from geco_ray.files.text import compare_key, first_repeated, same_text
from geco_ray.files.yaml_lines import Strictness, decode_text, read_yaml
from geco_ray.registry import Options

BETARCE = "https://raw.githubusercontent.com/istepka/betarce/f1e1b9892d3d0d055b117b88df7a2e32f296f7f2/data/"
FICO_FORM = "https://community.fico.com/s/explainable-machine-learning-challenge"

CONSTRAINTS = ("immutable", "only_rising", "only_falling", "ranges", "allowed", "categories")
"""The keys of a card that constrain counterfactuals: of categories, exactly one holds."""


class Card(Options):
    """Describes one table: source, label map, cleaning, constraints.

    ``favourable`` lists the target values that become class 1. With ``adverse`` given, every other value is an
    error; without it the target must have exactly one other value. ``immutable``, ``only_rising``, ``only_falling``,
    ``ranges`` and ``allowed`` (in the units of the table) constrain counterfactuals: what breaks one is counted.
    ``categories`` names columns of text with their values: each value becomes a feature of 0 and 1.
    ``integers`` is stated only. The paper's data sets have no constraints.
    ``show_rows: false`` keeps rows of the table out of a report's page, where the licence forbids showing them.
    ``missing`` names numbers that stand for missing values, of all features or by feature; a row that has one after
    the cleaning is refused.
    ``features``, when given, fixes the order of the columns; else the order of the file (less ``drop``) holds.
    """

    name: str = Field(pattern=r"^[a-z][a-z0-9_]*$")
    title: str = ""
    source: str = ""
    licence: str = ""
    terms: str | None = None
    show_rows: bool = True
    url: str | None = None
    sha256: str | None = Field(default=None, pattern=r"^[0-9a-f]{64}$")
    file_names: tuple[str, ...] = ()
    target: str
    favourable: tuple[str, ...] = Field(min_length=1)
    adverse: tuple[str, ...] = ()
    features: tuple[str, ...] = ()
    drop: tuple[str, ...] = ()
    drop_rows_with_negative_values: bool = False
    integers: tuple[str, ...] = ()
    immutable: tuple[str, ...] = ()
    only_rising: tuple[str, ...] = ()
    only_falling: tuple[str, ...] = ()
    ranges: dict[str, tuple[float, float]] = Field(default_factory=dict)
    allowed: dict[str, tuple[float, ...]] = Field(default_factory=dict)
    categories: dict[str, tuple[str, ...]] = Field(default_factory=dict)
    missing: tuple[float, ...] | dict[str, tuple[float, ...]] = ()
    rows: int | None = None
    favourable_rows: int | None = None

    @field_validator("missing", mode="before")
    @classmethod
    def _codes(cls, given: object) -> object:
        for codes in given.values() if isinstance(given, dict) else [given]:
            if not isinstance(codes, list | tuple) or not all(isinstance(code, int | float) for code in codes):
                raise ValueError("write a list of numbers, or one for each column: {income: [-9, -99]}")
        return given

    @model_validator(mode="after")
    def _consistent(self) -> Card:
        both = set(map(compare_key, self.favourable)) & set(map(compare_key, self.adverse))
        if both:
            raise ValueError(f"{sorted(both)} stand under favourable and under adverse")
        if any(same_text(self.target, name) for name in (*self.drop, *self.features)):
            raise ValueError(f"the target {self.target!r} cannot be dropped or be a feature")
        if first_repeated(self.features) is not None:
            raise ValueError("a feature is listed twice")
        for feature, (low, high) in self.ranges.items():
            if not low < high:
                raise ValueError(f"the range of {feature!r} is empty")
        for feature, values in self.allowed.items():
            if not values:
                raise ValueError(f"no value of {feature!r} is allowed")
        for feature, texts in self.categories.items():
            if len(texts) < 2 or first_repeated(texts) is not None:
                raise ValueError(f"the categories of {feature!r} are not two or more different ones")
        numeric = (*self.integers, *self.only_rising, *self.only_falling, *self.ranges, *self.allowed)
        for feature in self.categories:
            if any(same_text(feature, name) for name in numeric):
                raise ValueError(f"{feature!r} holds categories and is constrained as a number")
        stuck = set(map(compare_key, self.only_rising)) & set(map(compare_key, self.only_falling))
        if stuck:
            raise ValueError(f"{sorted(stuck)} may neither rise nor fall: write them under immutable")
        return self

    @property
    def declares_constraints(self) -> bool:
        """Whether it says anything about what a counterfactual may propose."""
        return any(getattr(self, key) for key in CONSTRAINTS)

    def candidates(self, data_dir: Path) -> list[Path]:
        """Where the file may lie under ``data_dir``, in the order it is looked for."""
        names = (f"{self.name}.csv", *self.file_names)
        return [folder / name for folder in (data_dir / "tabular", data_dir) for name in names]

    def digest(self) -> str:
        """Hash of what decides data and results: constraints do if there are any, titles and sources never."""
        shown_only = {
            "title",
            "source",
            "licence",
            "terms",
            "show_rows",
            "url",
            "file_names",
            "integers",
            "missing",
        }
        unused = () if self.declares_constraints else CONSTRAINTS
        text = json.dumps(self.model_dump(mode="json", exclude={*shown_only, *unused}), sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()


BUILT_IN: dict[str, Card] = {
    card.name: card
    for card in (
        Card(
            name="breast_cancer",
            title="Breast Cancer",
            source="scikit-learn's copy of Breast Cancer Wisconsin (Diagnostic), UCI data set 17",
            licence="CC BY 4.0",
            # Of scikit-learn's arrays (features as little-endian float64, then targets as int64), not of a file.
            sha256="25e2eb7b7a8745b1bde5ba18bc4969983d2e2f403291ecd5bde4a29ef30c3859",
            target="target",
            favourable=("1",),
            adverse=("0",),
            rows=569,
            favourable_rows=357,
        ),
        Card(
            name="diabetes",
            title="Diabetes",
            source="Pima Indians Diabetes (NIDDK), the copy in the BetaRCE repository",
            licence="CC0 1.0 (as published on Kaggle)",
            url=BETARCE + "diabetes.csv",
            sha256="d765aa828a47e8d3ba2f4de925891be77803fd0e9568d7c213cdf10c8e83d0b2",
            target="Outcome",
            favourable=("0",),
            adverse=("1",),
            integers=("Pregnancies", "Glucose", "BloodPressure", "SkinThickness", "Insulin", "Age"),
            rows=768,
            favourable_rows=500,
        ),
        Card(
            name="wine_quality",
            title="Wine Quality",
            source="UCI data set 186, red and white wines in one table, the copy in the BetaRCE repository",
            licence="CC BY 4.0",
            url=BETARCE + "wine_quality.csv",
            sha256="1e3ee93e992137e52e90df6374ee01eec07e62a621d0c05567e4c310fd1408a3",
            target="quality",
            favourable=("True",),
            adverse=("False",),
            rows=6497,
            favourable_rows=4113,
        ),
        Card(
            name="heloc",
            title="HELOC",
            source="FICO Explainable Machine Learning Challenge, the copy in the BetaRCE repository",
            licence="FICO's terms: its users fill in a form first",
            terms=f"FICO asks everyone who uses HELOC to fill in the form at {FICO_FORM}",
            show_rows=False,
            url=BETARCE + "fico.csv",
            sha256="e5a914f742ad7f8472c5417902ec06b321ebc5de1d68ec13f136d62c87a7fbf3",
            file_names=("fico.csv",),
            target="RiskPerformance",
            favourable=("Good",),
            adverse=("Bad",),
            drop=("MSinceMostRecentDelq", "MSinceMostRecentInqexcl7days", "NetFractionInstallBurden"),
            drop_rows_with_negative_values=True,
            rows=8291,
            favourable_rows=4040,
        ),
    )
}


_BOOLEANS = {"true": "True", "false": "False"}
_STRICTNESS = Strictness("cards", as_written=frozenset({"favourable", "adverse"}), spaced_comments=True)
_A_CARDS_KEY = re.compile(rb"""^(\xef\xbb\xbf)?(\{.*?)?["']?(target|favourable)["']?\s*:""", re.MULTILINE)


def looks_like_a_card(path: Path) -> bool:
    """Whether a YAML file is meant as a card: it has a card's key at the left edge, or a table of its name beside it.

    A folder of data holds labellings, grids and lists of words too; a card with a fault in it is still one.
    """
    if path.with_suffix(".csv").is_file():
        return True
    try:
        return _A_CARDS_KEY.search(path.read_bytes()) is not None
    except OSError:
        return False


def read_card(path: Path) -> Card:
    """Read a card from a YAML file.

    The values under ``favourable`` and ``adverse`` are taken as they are written, whatever YAML makes of them, since
    the table holds text; only ``true`` and ``false`` in lower case stand for ``True`` and ``False``.

    Raises:
        UserError: not YAML, a key given twice, an unknown key, a value of the wrong type; with file, line and key.
    """
    try:
        text = decode_text(path.read_bytes(), str(path))
    except OSError as error:
        raise UserError(f"the card cannot be read: {error.strerror}", where=str(path)) from None
    document = read_yaml(text, lambda line: f"{path}:{line}", _STRICTNESS)
    given = document.value
    if not isinstance(given, dict):
        raise UserError("a card is a mapping of keys to values", where=str(path), remedy="See docs/extending.md.")
    for key in _STRICTNESS.as_written:
        if isinstance(given.get(key), list):
            given[key] = [_BOOLEANS.get(value, value) if isinstance(value, str) else value for value in given[key]]
    try:
        return Card.model_validate(given)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        key = ".".join(str(part) for part in first["loc"]) or "card"
        remedy = suggest(key, Card.model_fields) if first["type"] == "extra_forbidden" else None
        line = document.lines.get(first["loc"], document.lines.get(first["loc"][:1], 1))
        what = first["msg"].removeprefix("Value error, ")
        raise UserError(f"key {key!r}: {what}", where=f"{path}:{line}", remedy=remedy) from None
