"""``geco-ray tune``: tune Wachter and ROAR-LIME on a table and keep what was selected beside its card."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from geco_ray.arithmetic import arithmetic_facts, set_arithmetic
from geco_ray.cli.data import DataDir
from geco_ray.cli.output import PlainConsole
from geco_ray.errors import UserError, unknown_name

if TYPE_CHECKING:
    from geco_ray.cfe.tuning import TuningEntry

Dataset = Annotated[str, typer.Argument(help="A table: one of the four, or NAME of a card NAME.yaml.")]
_ALL = "by default all"


def tune(
    dataset: Dataset,
    data_dir: DataDir = None,
    method: Annotated[list[str] | None, typer.Option(help=f"A method to tune; {_ALL} that are tuned.")] = None,
    protocol: Annotated[list[str] | None, typer.Option(help=f"paper or corrected; {_ALL}.")] = None,
    seeding: Annotated[list[str] | None, typer.Option(help="paper or independent; by default paper.")] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", "-n", help="Write nothing.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the selections as JSON.")] = False,
    arithmetic: Annotated[
        str, typer.Option(help="pinned: the same kernels on any x86-64; native: its own.")
    ] = "pinned",
) -> None:
    """Tune Wachter and ROAR-LIME on a table's first base model; grids then take the values from NAME.tuned.json."""
    if arithmetic not in ("pinned", "native"):
        raise unknown_name("arithmetic", arithmetic, ("pinned", "native"))
    set_arithmetic("pinned" if arithmetic == "pinned" else "native")  # before NumPy is imported
    from geco_ray.cfe.tuning import write_entries

    made = _entries(dataset, data_dir, method, protocol, seeding or ["paper"])
    path = _path(dataset, data_dir)
    if not dry_run:
        write_entries(path, _with_others(path, made))
    _show(made, path, dry_run, as_json)


def _entries(
    dataset: str,
    data_dir: Path | None,
    methods: Sequence[str] | None,
    protocols: Sequence[str] | None,
    seedings: Sequence[str],
) -> list[TuningEntry]:
    from geco_ray.cfe.base_model import train_base
    from geco_ray.cfe.data.datasets import load_dataset
    from geco_ray.cfe.protocol import PROTOCOLS, resolve_protocol
    from geco_ray.cfe.seeding import BASE_SEEDS, BaseKey
    from geco_ray.cfe.training import Pool
    from geco_ray.cfe.tuning import GRIDS, tune_base
    from geco_ray.device import limit_threads
    from geco_ray.ledger.provenance import versions

    for protocol in protocols or ():
        resolve_protocol(protocol)
    for name in methods or ():
        if name not in GRIDS:
            raise unknown_name("tuned method", name, GRIDS)
    limit_threads(1)  # as a run's workers
    data, made = load_dataset(dataset, data_dir), []
    for seeding in seedings:
        base = train_base(BaseKey(data.name, BASE_SEEDS[0], seeding), Pool.of(data))
        if base.model.favourable(data.val.x).all():
            raise UserError(
                f"the base model of {dataset!r} calls every validation row favourable: there is none to tune on",
                remedy="Set the options yourself (docs/extending.md), or check the card's favourable values",
            )
        for protocol in protocols or PROTOCOLS:
            facts = arithmetic_facts() | {"packages": versions()}
            made += [tune_base(name, protocol, data, base, facts) for name in methods or GRIDS]
    return made


def _path(dataset: str, data_dir: Path | None) -> Path:
    """Beside the card, the table's file, or where it would be looked for."""
    from geco_ray.cfe.data.cards import BUILT_IN
    from geco_ray.cfe.data.datasets import find_file
    from geco_ray.cfe.tuning import own_record
    from geco_ray.files.roots import cache_dir, data_roots

    name = f"{dataset}.tuned.json"
    if (there := own_record(dataset, data_dir)) is not None:
        return there
    if dataset not in BUILT_IN:
        cards = (folder / f"{dataset}.yaml" for root in data_roots(data_dir) for folder in (root / "tabular", root))
        return next(card for card in cards if card.is_file()).with_name(name)
    if BUILT_IN[dataset].url:
        return find_file(BUILT_IN[dataset], data_dir).with_name(name)
    folder = (data_dir or cache_dir()) / "tabular"
    folder.mkdir(parents=True, exist_ok=True)
    return folder / name


def _with_others(path: Path, made: Sequence[TuningEntry]) -> list[TuningEntry]:
    """The new entries, and those of the file that are about the same data and none of the new."""
    from geco_ray.cfe.tuning import read_entries

    kept = read_entries(path) if path.is_file() else {}
    current = {key: entry for key, entry in kept.items() if entry.data == made[0].data}
    return list((current | {entry.key: entry for entry in made}).values())


def _show(made: Sequence[TuningEntry], path: Path, dry_run: bool, as_json: bool) -> None:
    out = PlainConsole()
    if as_json:
        facts: list[dict[str, Any]] = [asdict(entry) for entry in made]
        out.print_json(json.dumps({"file": None if dry_run else str(path), "entries": facts}))
        return
    for entry in made:
        best = next(c for c in entry.candidates if c.options == entry.by_rule)
        values = ", ".join(f"{name} {value:g}" for name, value in entry.by_rule.items())
        distance = "-" if best.distance is None else f"{best.distance:.3f}"
        out.print(
            f"{entry.method}, protocol {entry.protocol}, seeding {entry.seeding}: {values} "
            f"({100 * best.valid_share:.0f} % of {len(entry.row_ids)} rows valid, distance {distance})",
            soft_wrap=True,
        )
    out.print(
        "nothing was written" if dry_run else f"wrote {path}; grids take these values from now on", soft_wrap=True
    )
