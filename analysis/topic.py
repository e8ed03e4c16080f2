"""A topic: how the finished cells of one benchmark are read. The report goes through the topics and names none."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import pandas as pd

from analysis.load import LedgerLike, RecordLike, StageColumns, records
from analysis.styles import Names, Titles
from analysis.views import View
from geco_ray.errors import UserError
from geco_ray.plan.benchmark import benchmarks
from geco_ray.registry import Profile

if TYPE_CHECKING:
    from analysis.figures import Picture

F = TypeVar("F")
ROOM = 3_000_000
"""Bytes of a page for single rows; with figures and tables it stays under 5 MB."""


@dataclass(frozen=True)
class Table(Generic[F]):
    """A table of numbers, written as a CSV file: what is in it, and how it is computed; without rows it has no file."""

    contents: str
    compute: Callable[[Numbers[F]], pd.DataFrame]


@dataclass(frozen=True)
class Section:
    """A further section of the report's page, and what belongs to it.

    Attributes:
        anchor: where links lead. label: in the page's navigation. heading: above the section.
        html: the section itself, ready for the page.
        files: further files of the report, name to content; ``contents`` says what each of them is.
    """

    anchor: str
    label: str
    heading: str
    html: str
    files: Mapping[str, bytes] = field(default_factory=dict)
    contents: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Topic(Generic[F]):
    """How one benchmark is read.

    Attributes:
        name: the benchmark.
        question: what it asks, in the middle of a sentence.
        begins_with: the kind of cell with which there is a result to show.
        stages: what is read of each stage, in the order of the stages.
        names: the kinds of names that its tables show.
        load: the frames of the finished cells of a ledger, of all or of the given ids.
        tables: CSV file name to table. Views and figures are made of the same tables.
        views: the tables as people read them.
        figures: all figures that there are numbers for.
        sections: further sections of the page; the second argument is the name of the grid.
        health: tables of what went wrong within finished cells: undefined values, requests without an answer, ...
    """

    name: str
    question: str
    begins_with: str
    stages: tuple[StageColumns, ...]
    names: tuple[Names, ...]
    load: Callable[[LedgerLike, Collection[str] | None], F]
    tables: Mapping[str, Table[F]]
    views: Callable[[Numbers[F]], list[View]]
    figures: Callable[[Numbers[F]], list[Picture]] = lambda numbers: []
    sections: Callable[[Numbers[F], str], list[Section]] = lambda numbers, grid: []
    health: Callable[[Numbers[F]], list[View]] = lambda numbers: []


class Numbers(Generic[F]):
    """The numbers of one topic in a report: frames, titles, and tables that are computed when first asked for.

    ``level`` is the share of pages on which this topic may say one false "ahead of"; topics of one page share it.
    ``room`` is how many bytes of the page this topic's single rows may take, shared likewise; ``person_rows`` is False
    where rows that may be of persons stay out of the page.
    """

    def __init__(
        self, topic: Topic[F], ledger: LedgerLike, ids: Collection[str] | None = None, data_dir: Path | None = None,
        person_rows: bool = True,
    ) -> None:  # fmt: skip
        self.topic, self.ledger, self.ids, self.data_dir = topic, ledger, ids, data_dir
        self.person_rows, self.room = person_rows, ROOM
        self.frames = topic.load(ledger, ids)
        self._records = {stage.name: records(ledger, stage, ids) for stage in topic.stages}
        kinds = [names.kind for names in topic.names]
        profiles = _recorded_profiles(kinds, self._records.values())
        names = [replace(own, recorded=profiles[own.kind]) for own in topic.names]
        self.titles = Titles(names, _recorded_titles(topic.names, self._records.values()), data_dir)
        self.level = 0.05
        self._tables: dict[str, pd.DataFrame] = {}
        self._views: list[View] | None = None
        self._pictures: list[Picture] | None = None

    def table(self, file: str) -> pd.DataFrame:
        """The table of that CSV file."""
        if file not in self._tables:
            self._tables[file] = self.topic.tables[file].compute(self)
        return self._tables[file]

    def files(self) -> dict[str, pd.DataFrame]:
        """CSV file name to table, of the tables that have rows."""
        return {file: table for file in self.topic.tables if not (table := self.table(file)).empty}

    def views(self) -> list[View]:
        """The tables as people read them."""
        if self._views is None:
            self._views = self.topic.views(self)
        return self._views

    def pictures(self) -> list[Picture]:
        """All figures that there are numbers for."""
        if self._pictures is None:
            self._pictures = self.topic.figures(self)
        return self._pictures

    def counts(self) -> list[tuple[str, int]]:
        """Finished cells by stage, stages without any left out."""
        return [(stage, len(finished)) for stage, finished in self._records.items() if finished]

    def records(self) -> Iterator[RecordLike]:
        """The records of all finished cells that are read."""
        return (record for finished in self._records.values() for record in finished)

    def infos(self) -> Iterator[Mapping[str, Any]]:
        """What the record of each finished cell says of how it was computed."""
        return (getattr(record, "info", {}) for record in self.records())


def _recorded_titles(names: Sequence[Names], stages: Iterable[Sequence[RecordLike]]) -> dict[tuple[str, str], str]:
    """(kind, name) to the title that the computing machine knew, from the records; of several, the last record's."""
    titles: dict[tuple[str, str], str] = {}
    kinds = [own.kind for own in names]
    for finished in stages:
        for record in finished:
            for kind, title in getattr(record, "info", {}).get("titles", {}).items():
                if kind in kinds and title:
                    titles[kind, str(record.params.get(kind))] = str(title)
    return titles


def _recorded_profiles(kinds: Sequence[str], stages: Iterable[Sequence[RecordLike]]) -> dict[str, dict[str, Profile]]:
    """For each kind, name to the profile that the computing machine knew; of several, the last record's."""
    found: dict[str, dict[str, Profile]] = {kind: {} for kind in kinds}
    known = {one.name for one in fields(Profile)}
    for finished in stages:
        for record in finished:
            for kind, values in getattr(record, "info", {}).get("profiles", {}).items():
                if kind in found:
                    own = {key: tuple(value) if isinstance(value, list) else value for key, value in values.items()}
                    usable: dict[str, Any] = {key: value for key, value in own.items() if key in known}
                    found[kind][str(record.params.get(kind))] = Profile(**usable)
    return found


def topics() -> list[Topic[Any]]:
    """The topics of all benchmarks, in the order in which they are shown.

    Raises:
        UserError: a topic cannot be imported.
    """
    return list(map(_topic, _readings()))


def _readings() -> Sequence[str]:
    return [benchmark.reading for benchmark in benchmarks()]


def _topic(reading: str) -> Topic[Any]:
    module, _, name = reading.partition(":")
    try:
        found = getattr(importlib.import_module(module), name)
    except (ImportError, AttributeError, ValueError) as error:
        raise UserError(f"the reading side of a benchmark cannot be imported: {error}", where=reading) from error
    if not isinstance(found, Topic):
        raise UserError("the reading side of a benchmark is no topic", where=reading, found=type(found).__name__)
    return found
