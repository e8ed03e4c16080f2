"""Writing the files of an export."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from geco_ray.files.atomic import write_whole


def write_json(path: Path, value: Mapping[str, Any]) -> None:
    """One JSON object, indented, ended by a line break."""
    write_whole(path, (json.dumps(value, indent=1, ensure_ascii=False) + "\n").encode())


def write_lines(path: Path, values: Iterable[Mapping[str, Any]]) -> None:
    """One JSON object a line."""
    write_whole(path, "".join(json.dumps(value, ensure_ascii=False) + "\n" for value in values).encode())


def write_csv(path: Path, header: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """A CSV with a header, UTF-8, Unix line ends."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(header)
    writer.writerows(rows)
    write_whole(path, text.getvalue().encode())


def tidy(x: npt.NDArray[np.float64]) -> list[list[float]]:
    """Rows in 12 significant digits: what scaling there and back leaves of a table's numbers."""
    return [[float(f"{value:.12g}") for value in row] for row in x.tolist()]
