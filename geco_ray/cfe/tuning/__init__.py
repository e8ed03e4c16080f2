"""Tuning of Wachter and ROAR-LIME: the rule, the record of what it selected, and whether a run agrees with it."""

from geco_ray.cfe.tuning.agreement import compare_tuning, tune_base, tuning_warning
from geco_ray.cfe.tuning.record import (
    RECORD,
    TuningEntry,
    find_entry,
    own_record,
    read_entries,
    resolve_tuned,
    tune_command,
    tuned,
    write_entries,
)
from geco_ray.cfe.tuning.rule import (
    GRIDS,
    ROAR_LIME_GRID,
    WACHTER_GRID,
    Candidate,
    Tuning,
    select,
    select_beyond_noise,
    tune,
)

__all__ = [
    "GRIDS",
    "RECORD",
    "ROAR_LIME_GRID",
    "WACHTER_GRID",
    "Candidate",
    "Tuning",
    "TuningEntry",
    "compare_tuning",
    "find_entry",
    "own_record",
    "read_entries",
    "resolve_tuned",
    "select",
    "select_beyond_noise",
    "tune",
    "tune_base",
    "tune_command",
    "tuned",
    "tuning_warning",
    "write_entries",
]
