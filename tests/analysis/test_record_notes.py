"""What a method said of its own scores stands under the table that shows them."""

from __future__ import annotations

from typing import Any

from analysis.geco.record_notes import with_method_notes
from analysis.geco.styles import TITLES
from analysis.views import View


class Record:
    id = "x"

    def __init__(self, paradigm: str, note: str | None, protocol: str = "corrected") -> None:
        self.params = {"dataset": "mine", "protocol": protocol, "method": "guided_backprop", "paradigm": paradigm}
        self.info = {"note": note} if note else {}


class Ledger:
    def records(self, stage: object) -> list[Record]:
        plain = "the plain gradient."
        return [Record("bert_c", plain), Record("ola_cea", plain), Record("bert_c", plain), Record("bert_c", None)]


def test_a_note_names_method_and_models_once_and_only_under_its_own_table() -> None:
    views = [
        View(f"mass_accuracy_{key}", "t", ("a",), ()) for key in ("mine_corrected", "mine_paper", "other_corrected")
    ]
    ledger: Any = Ledger()
    own, *others = with_method_notes(views, ledger, None, TITLES)
    assert own.findings == ("Guided Backprop on BERT-C and OLA-CEA: the plain gradient.",)
    assert [view.findings for view in others] == [(), ()]
