"""Where a cell's files lie below ``cells/``: in its stage's folder, or fanned out over 256 folders of that.

The layout of a run folder is fixed by the first run that works on it and recorded in ``layout.json``. A folder without
that file, of an older version or filled by :meth:`Ledger.put`, is what its folders show: flat, or fanned out.
"""

from __future__ import annotations

import json
from typing import Literal, cast

from geco_ray.errors import UserError
from geco_ray.ledger.interface import FANS, Storage

Layout = Literal["flat", "fanned"]
FILE = "layout.json"
FANNED_FROM = 50_000  # cells of one stage: a folder of more is slow to list by hand, on network disks and in buckets


def cell_folder(layout: Layout, stage: str, cell_id: str) -> str:
    """The folder of a cell's files."""
    return f"cells/{stage}/{cell_id[:2]}" if layout == "fanned" else f"cells/{stage}"


def recorded_layout(storage: Storage) -> Layout | None:
    """The layout of a run folder; None where nothing fixes it yet.

    Raises:
        UserError: the file that records it cannot be understood.
    """
    try:
        data = storage.read(FILE)
    except FileNotFoundError:
        return _seen_layout(storage)
    except OSError as error:
        data = str(error).encode()
    try:
        layout = json.loads(data)["layout"]
    except (ValueError, KeyError, TypeError, RecursionError):
        layout = None
    if layout not in ("flat", "fanned"):
        raise UserError(
            "the layout of the run folder cannot be read",
            where=f"{storage.root}/{FILE}",
            found=data[:80].decode(errors="replace"),
            expected='{"layout": "flat"} or {"layout": "fanned"}',
            remedy="Write `fanned` if the folders of cells/ hold folders 00 to ff, else `flat`; or delete the file",
        )
    return cast(Layout, layout)


def fix_layout(storage: Storage, most: int) -> Layout:
    """Record the layout of a run folder, so that it is fixed; that of a folder in use stays as it is.

    Args:
        most: cells of the largest stage of the grid that makes the folder.
    """
    layout = recorded_layout(storage)
    if layout is None or FILE not in storage.names(""):
        layout = layout or ("fanned" if most >= FANNED_FROM else "flat")
        storage.write(FILE, json.dumps({"layout": layout}).encode())
    return layout


def _seen_layout(storage: Storage) -> Layout | None:
    """What the folders show where no file says it: it may be an old folder, or the file was lost."""
    stages = storage.folders("cells")
    if any(fan in FANS for stage in stages for fan in storage.folders(f"cells/{stage}")):
        return "fanned"
    return "flat" if stages else None
