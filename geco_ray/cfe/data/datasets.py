"""The benchmark's data sets: four built in, and any CSV with a card beside it.

Names, cards and fingerprints cost nothing; :func:`load_dataset` reads, checks, splits and scales.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from geco_ray.cfe.data.cards import BUILT_IN, Card, looks_like_a_card, read_card
from geco_ray.cfe.data.categories import Group
from geco_ray.cfe.data.remarks import Remark
from geco_ray.cfe.data.split import four_way_split
from geco_ray.cfe.data.tabular import Table, check_table, read_table
from geco_ray.errors import UserError, unknown_name
from geco_ray.files.checksums import not_the_pinned_file, sha256_of
from geco_ray.files.roots import cache_dir, data_roots
from geco_ray.files.text import same_text

if TYPE_CHECKING:
    import numpy.typing as npt

PREPARATION = "cleaned, split 50/10/10/30 with seed 2026, standardised on train, float64; 1"


@dataclass(frozen=True, eq=False)
class Part:
    """Rows of a part: ``x`` float64 (n, d) standardised, ``y`` int64 (n,), ``row_ids`` int64 (n,) in the raw table."""

    x: npt.NDArray[np.float64]
    y: npt.NDArray[np.int64]
    row_ids: npt.NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.y)


@dataclass(frozen=True, eq=False)
class Dataset:
    """A data set, split in four and standardised with the training part's mean and (population) deviation.

    Label 1 is the favourable outcome. ``mean`` and ``scale`` (float64 (d,)) lead back to the table's units. ``remarks``
    are values of the table that may not mean what they say (:mod:`geco_ray.cfe.data.remarks`), ``groups`` the columns
    of categories, each of several features.
    """

    name: str
    features: tuple[str, ...]
    train: Part
    update: Part
    val: Part
    test: Part
    mean: npt.NDArray[np.float64]
    scale: npt.NDArray[np.float64]
    fingerprint: str
    card: Card
    remarks: tuple[Remark, ...] = ()
    groups: tuple[Group, ...] = ()

    def in_units(self, x: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        """Standardised rows (n, d) in the units of the table."""
        return x * self.scale + self.mean


def dataset_names(data_dir: Path | None = None) -> list[str]:
    """Names of the built-in data sets, and of those with a card (``NAME.yaml``) in one of the folders of data."""
    return sorted({*BUILT_IN, *(path.stem for path in _yaml_files(data_dir) if looks_like_a_card(path))})


def dataset_card(name: str, data_dir: Path | None = None) -> Card:
    """The card of a data set.

    Raises:
        UserError: no such data set, or a card that cannot be read.
    """
    if name in BUILT_IN:
        return BUILT_IN[name]
    named = [path for path in _yaml_files(data_dir) if path.stem == name]
    for path in sorted(named, key=looks_like_a_card, reverse=True):  # one that is none is read last, and refused
        card = read_card(path)
        if card.name != name:
            raise UserError("a card's name and its file's name differ", where=str(path), found=card.name)
        return card
    raise unknown_name("data set", name, dataset_names(data_dir))


def dataset_fingerprint(name: str, data_dir: Path | None = None) -> str:
    """What identifies the prepared data, from the card and the table's SHA-256.

    A card that pins its SHA-256 (all built-in ones) needs no file; else the file is hashed.
    """
    card = dataset_card(name, data_dir)
    sha256 = card.sha256 or sha256_of(find_file(card, data_dir))
    return hashlib.sha256(f"{PREPARATION}\n{card.digest()}\n{sha256}".encode()).hexdigest()


def load_dataset(name: str, data_dir: Path | None = None) -> Dataset:
    """Load, check, split and scale a data set.

    Args:
        name: a name of :func:`dataset_names`.
        data_dir: folder that holds ``tabular/NAME.csv`` or ``NAME.csv``; without it ``$GECO_RAY_DATA`` and the
            download cache are searched. ``breast_cancer`` needs none.

    Raises:
        UserError: unknown name, missing file, wrong checksum, or a fault in the table (column and line are named).
    """
    card = dataset_card(name, data_dir)
    table, where = open_table(card, data_dir)
    return prepare(table, card, dataset_fingerprint(name, data_dir), where=where)


def open_table(card: Card, data_dir: Path | None) -> tuple[Table, str]:
    """The cleaned table of a card, not yet split or scaled, and the name of its file for messages.

    Raises:
        UserError: a missing file, a wrong checksum, or a fault in the table (column and line are named).
    """
    if card.name == "breast_cancer":
        return _breast_cancer(card), "scikit-learn's breast cancer data"
    path = find_file(card, data_dir)
    _check_sha256(path, card)
    return read_table(path, card), str(path)


def prepare(table: Table, card: Card, fingerprint: str, *, where: str) -> Dataset:
    """Split and standardise a cleaned table.

    Raises:
        UserError: too few rows for the split, a feature that is constant in the training part or once it is scaled, or
            one whose mean, deviation or scaled values overflow.
    """
    split = four_way_split(table.y, where=where)
    from sklearn.preprocessing import StandardScaler

    train = table.x[split.train]
    _refuse_constant(table.features, train, "in the training part", where)
    with np.errstate(over="ignore", invalid="ignore"):  # looked for below, by column
        scaler = StandardScaler().fit(train)
        scaled = np.asarray(scaler.transform(table.x), dtype=np.float64)
    mean, scale = np.asarray(scaler.mean_), np.asarray(scaler.scale_)
    _refuse_overflow(table, scaled, np.isfinite(mean) & np.isfinite(scale), where)
    _refuse_constant(table.features, scaled[split.train].astype(np.float32), "once it is scaled to float32", where)

    def part(rows: npt.NDArray[np.int64]) -> Part:
        return Part(np.ascontiguousarray(scaled[rows]), table.y[rows], table.row_ids[rows])

    train_part, update, val, test = (part(rows) for rows in (split.train, split.update, split.val, split.test))
    return Dataset(
        card.name,
        table.features,
        train_part,
        update,
        val,
        test,
        mean,
        scale,
        fingerprint,
        card,
        table.remarks,
        table.groups,
    )


def _refuse_constant(features: Sequence[str], x: npt.NDArray[Any], when: str, where: str) -> None:
    constant = np.flatnonzero((x == x[0]).all(axis=0))
    if len(constant):
        raise UserError(
            f"column {features[constant[0]]!r} is constant {when}",
            where=where,
            found=float(x[0, constant[0]]),
            remedy="Drop it in the card.",
        )


def _refuse_overflow(table: Table, scaled: npt.NDArray[np.float64], finite: npt.NDArray[np.bool_], where: str) -> None:
    """Networks compute in float32, so a scaled value must fit into it."""
    fits = finite & (np.abs(scaled) <= np.finfo(np.float32).max).all(axis=0)  # NaN compares as False
    if fits.all():
        return
    column = int(np.flatnonzero(~fits)[0])
    values = table.x[:, column]
    row = int(np.abs(values).argmax())
    raise UserError(
        f"column {table.features[column]!r} overflows when it is scaled",
        where=table.place(row, where),
        found=float(values[row]),
        expected="numbers whose mean, deviation and scaled values are finite",
        remedy="If it stands for a missing value, drop the column in the card, or take the rows out.",
    )


def check_feature_order(model: Sequence[str], data: Sequence[str], *, where: str) -> None:
    """Refuse a model whose inputs are not the data's columns in the same order.

    Raises:
        UserError: names the first column that differs.
    """
    if len(model) != len(data):
        raise UserError(
            "model and data differ in the number of features", where=where, found=len(data), expected=str(len(model))
        )
    for position, (wanted, given) in enumerate(zip(model, data, strict=True)):
        if not same_text(wanted, given):
            raise UserError(
                f"model and data differ in column {position + 1}", where=where, found=given, expected=repr(wanted)
            )


def find_file(card: Card, data_dir: Path | None) -> Path:
    """The table's file in the first of the folders of data that has it.

    Raises:
        UserError: it is nowhere; the message says where it was looked for, where it comes from and on what terms.
    """
    looked = [path for root in data_roots(data_dir) for path in card.candidates(root)]
    for path in looked:
        if path.is_file():
            return path
    terms = f" {card.terms}." if card.terms else ""
    accept = " --accept-terms" if card.terms else ""
    get = f"Get it with `geco-ray data download {card.name}{accept}`, or give" if card.url else "Give"
    origin = f" It comes from {card.url} (SHA-256 {card.sha256})." if card.url else ""
    raise UserError(
        f"data set {card.name!r} has no file, looked for {', '.join(map(str, looked))}",
        remedy=f"{get} its folder with --data-dir.{origin}{terms}",
    )


def download_dataset(
    name: str, data_dir: Path | None = None, *, accept_terms: bool = False, offline: bool | None = None
) -> Path:
    """Fetch a built-in table from its pinned commit into ``data_dir/tabular`` and check its SHA-256.

    Args:
        name: the data set.
        data_dir: the folder; by default the download cache, where :func:`load_dataset` looks too.
        accept_terms: the explicit word that the terms of use are accepted.
        offline: never touch the network; by default what ``$GECO_RAY_OFFLINE`` says.

    Raises:
        UserError: the data set has no address, or has terms of use that were not accepted in words.
    """
    card = dataset_card(name, data_dir)
    if card.url is None or card.sha256 is None:
        remedy = "It comes with scikit-learn" if name == "breast_cancer" else "It has no address: put the file there"
        raise UserError(f"data set {name!r} is not downloaded", remedy=f"{remedy}.")
    if card.terms and not accept_terms:
        remedy = f"{card.terms}; then accept them explicitly (--accept-terms)."
        raise UserError(f"data set {name!r} has terms of use", remedy=remedy)
    from geco_ray.files.download import fetch

    target = (cache_dir() if data_dir is None else data_dir) / "tabular" / f"{name}.csv"
    return fetch(card.url, card.sha256, target, offline=offline)


def _yaml_files(data_dir: Path | None) -> list[Path]:
    folders = [folder for root in data_roots(data_dir) for folder in (root / "tabular", root)]
    return [path for folder in folders if folder.is_dir() for path in sorted(folder.glob("*.yaml"))]


def _check_sha256(path: Path, card: Card) -> None:
    if card.sha256 is None:
        return
    found = sha256_of(path)
    if found != card.sha256:
        then = f"and get it again from {card.url}" if card.url else "or write the SHA-256 of the new file into its card"
        raise not_the_pinned_file(path, found=found, expected=card.sha256, then=then, kind=UserError)


def _breast_cancer(card: Card) -> Table:
    from sklearn.datasets import load_breast_cancer

    bunch = load_breast_cancer()
    x = np.ascontiguousarray(bunch.data, dtype="<f8")
    y = np.ascontiguousarray(bunch.target, dtype="<i8")
    found = hashlib.sha256(x.tobytes() + y.tobytes()).hexdigest()
    if found != card.sha256:
        raise UserError(
            "scikit-learn's breast cancer data are not those of the paper",
            found=found,
            expected=str(card.sha256),
            remedy="Install a scikit-learn of the tested set (constraints.txt).",
        )
    # No remarks: the arrays are pinned, and the zeros of three columns (no concave points) are measurements.
    table = Table(tuple(str(name) for name in bunch.feature_names), x, y, np.arange(len(y), dtype=np.int64))
    check_table(table, card, where="scikit-learn's breast cancer data")
    return table
