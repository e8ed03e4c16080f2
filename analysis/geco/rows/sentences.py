"""Every sentence of a run as data of the page: all forms, what each model says, what each method attributes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from analysis.aggregate import lines
from analysis.geco.frames import EXPLAIN, TRAIN, GecoFrames, model_settings
from analysis.geco.labels import with_labels
from analysis.geco.models.predictions import predictions
from analysis.geco.rows.levels import encoded
from analysis.load import RecordLike, records, settings_of
from analysis.rows.sampling import every_kth, ordinal, size_of
from analysis.rows.section import rows_section
from analysis.topic import Numbers, Section
from analysis.views import ordered

_READ = ("row", "sentence_idx", "target", "gender", "predicted", "correct", "words", "truth", "attribution", "signed")
_SCRIPT = Path(__file__).parents[1] / "templates" / "sentences.js"
_HOW = (
    "Blue words speak for the explained class, orange and slanted ones against it; grey ones have no sign, since the "
    "method gives none. The darkest word of a line has the line's largest attribution. Marked words, which decide the "
    "class, are underlined. MA is mass accuracy, p the probability of the sentence's own class; methods differ by the "
    "largest less the smallest MA of a form. All is of one seed, the lowest: examples, not results."
)


def sentence_rows(numbers: Numbers[GecoFrames]) -> Section | None:
    """The section of all sentences; None where nothing is explained."""
    explained = records(numbers.ledger, EXPLAIN, numbers.ids)
    wanted = sorted({(str(one.params.get("dataset")), str(one.params.get("protocol"))) for one in explained})
    lead, groups, room = [_HOW], [], numbers.room
    for left, (dataset, protocol) in zip(range(len(wanted), 0, -1), wanted, strict=True):
        chosen = _first_seed([one for one in explained if _is_of(one, dataset, protocol)])
        group = _Group(numbers, chosen, dataset, protocol)
        step, made = every_kth(group.sentences, group.data, room // left)
        room -= size_of(made)
        shown, every = len(made["sentences"]), len(group.sentences)
        name = f"{made['title']} ({protocol}), seed {made['seed']}"
        lead.append(f"{name}: {shown:,} of {every:,} source sentences, {ordinal(step)} one in their order.")
        groups.append(made)
    if not groups:
        return None
    return rows_section("sentences", "Sentences", "Every sentence", lead, groups, _SCRIPT)


def _is_of(record: RecordLike, dataset: str, protocol: str) -> bool:
    return (str(record.params.get("dataset")), str(record.params.get("protocol"))) == (dataset, protocol)


def _first_seed(found: Sequence[RecordLike]) -> list[RecordLike]:
    """Those of the lowest seed, and those of models that have none."""
    seeds = [record.params["seed"] for record in found if record.params.get("seed") is not None]
    first = min(seeds, default=None)
    return [record for record in found if record.params.get("seed") in (first, None)]


class _Group:
    """The explained sentences of one data set under one protocol, from one seed's cells."""

    def __init__(self, numbers: Numbers[GecoFrames], chosen: Sequence[RecordLike], dataset: str, protocol: str) -> None:
        self.protocol, self.numbers = protocol, numbers
        seeds = [record.params["seed"] for record in chosen if record.params.get("seed") is not None]
        self.seed = str(min(seeds)) if seeds else "–"
        self._tables = {record.id: _read(numbers.ledger.table(record)) for record in chosen}
        named = with_labels(_named(chosen), numbers.titles)
        self.title = str(named["dataset_title"].iloc[0])
        self.models, self.methods = ordered(named, "paradigm", "model_label"), ordered(named, "method", "method_label")
        self._place = {
            row.cell: (self.models.index(row.model_label), self.methods.index(row.method_label)) for row in lines(named)
        }
        self._mass = _mass(numbers.frames.score, chosen)
        self._p = _probabilities(numbers, dataset, protocol, chosen)
        self.sentences = sorted({int(n) for table in self._tables.values() for n in table["sentence_idx"].to_pylist()})

    def data(self, sentences: Sequence[int]) -> dict[str, Any]:
        """The group as the page's script reads it, of these source sentences."""
        found: dict[int, dict[int, dict[str, Any]]] = {int(index): {} for index in sentences}
        classes: dict[int, str] = {}
        value_set = pa.array(list(sentences), pa.int64())
        for cell, table in sorted(self._tables.items(), key=lambda item: self._place[item[0]]):
            part = table.filter(pc.is_in(table["sentence_idx"].cast(pa.int64()), value_set=value_set))
            for row in part.to_pylist():
                classes.setdefault(row["target"], str(row["gender"]))
                forms = found[row["sentence_idx"]]
                form = forms.setdefault(row["row"], self._form(row))
                self._add(form, cell, row)
        listed = [[index, [forms[row] for row in sorted(forms)]] for index, forms in found.items()]
        names = [classes.get(number, str(number)) for number in range(max(classes, default=-1) + 1)]
        return {"title": self.title, "protocol": self.protocol, "seed": self.seed, "models": self.models,
                "methods": self.methods, "classes": names, "sentences": listed}  # fmt: skip

    def _form(self, row: Mapping[str, Any]) -> dict[str, Any]:
        marked = [place for place, mark in enumerate(row["truth"]) if mark]
        blank: list[Any] = [None] * len(self.models)
        return {"r": row["row"], "c": row["target"], "w": row["words"], "t": marked, "m": blank}

    def _add(self, form: dict[str, Any], cell: str, row: Mapping[str, Any]) -> None:
        model, method = self._place[cell]
        if form["m"][model] is None:
            said = self._p.get((self.models[model], row["row"]))
            none: list[Any] = [None] * len(self.methods)
            form["m"][model] = [row["predicted"], said, int(bool(row["correct"])), none, list(none)]
        own = form["m"][model]
        own[3][method] = self._mass.get((cell, row["row"]))
        signed, unsigned = row.get("signed"), row["attribution"]
        if unsigned is not None and None not in unsigned:  # null: the method has none for this row
            own[4][method] = encoded(signed) if signed else "=" + encoded(unsigned)


def _read(table: Any) -> Any:
    return table.select([name for name in _READ if name in table.column_names])


def _named(chosen: Sequence[RecordLike]) -> pd.DataFrame:
    """A row per cell with its names and settings."""
    rows = [
        {"cell": one.id, "settings": settings_of(one, EXPLAIN)} | {axis: one.params.get(axis) for axis in EXPLAIN.axes}
        for one in chosen
    ]
    return pd.DataFrame(rows)


def _mass(score: pd.DataFrame, chosen: Sequence[RecordLike]) -> dict[tuple[str, int], float]:
    """(explain cell, row) to mass accuracy, rounded to three digits; rows without one are left out."""
    keys = [axis for axis in EXPLAIN.axes if axis in score.columns]
    cells = _named(chosen).rename(columns={"cell": "explained"})[["explained", *keys, "settings"]]
    cells["seed"] = cells["seed"].astype("Int64")
    known = score[[*keys, "settings", "row", "mass_accuracy"]].dropna(subset="mass_accuracy")
    joined = known.merge(cells, on=[*keys, "settings"])
    values = np.round(joined["mass_accuracy"].astype("float64"), 3)
    return dict(zip(zip(joined["explained"], joined["row"], strict=True), values.tolist(), strict=True))


def _probabilities(
    numbers: Numbers[GecoFrames], dataset: str, protocol: str, chosen: Sequence[RecordLike]
) -> dict[tuple[str, int], float]:
    """(model's label, row) to the probability of the row's own class, rounded to three digits."""
    seeds = {record.params.get("seed") for record in chosen}
    trained = [
        record for record in records(numbers.ledger, TRAIN, numbers.ids)
        if _is_of(record, dataset, protocol) and record.params.get("seed") in seeds
    ]  # fmt: skip
    said = predictions(numbers.ledger, [record.id for record in trained]).dropna(subset="probability")
    labels = with_labels(_named(chosen), numbers.titles)
    model = {(row.encoder, row.paradigm, model_settings(row.settings)): row.model_label for row in lines(labels)}
    keys = zip(said["encoder"], said["paradigm"], said["model_settings"], strict=True)
    rows = zip(keys, said["row"], said["probability"], strict=True)
    return {(model[key], int(row)): round(float(p), 3) for key, row, p in rows if key in model}
