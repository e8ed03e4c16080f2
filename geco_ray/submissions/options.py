"""``{name: submission, file: mine.csv}`` in a grid: a file by its content, under the name that its card gives."""

from __future__ import annotations

from pathlib import Path
from typing import Any, ClassVar

from pydantic import Field, model_validator

from geco_ray.errors import UserError
from geco_ray.registry import Options
from geco_ray.submissions.cards import content_id, find_submission, read_card


class SubmissionOptions(Options):
    """``file``: the submitted file, which is no part of a result's identity; its ``content`` and ``version`` are."""

    registered_as: ClassVar[str] = "submission"

    file: str = Field(exclude=True)
    content: str = ""
    version: str = ""

    @model_validator(mode="before")
    @classmethod
    def _look(cls, given: Any) -> Any:
        """Fill in what the file is."""
        if not isinstance(given, dict) or not isinstance(given.get("file"), str):
            return given
        try:
            path = find_submission(given["file"])
            found = {"content": content_id(path), "version": read_card(path).version}
        except UserError as error:
            raise ValueError(str(error).rstrip(".")) from None
        for key, value in found.items():
            if given.get(key, value) != value:
                raise ValueError(f"{path} has {key} {value!r}, not {given[key]!r}")
        return {**given, **found, "file": str(path.resolve())}

    @property
    def path(self) -> Path:
        """The submitted file."""
        return Path(self.file)

    def called(self, name: str, title: str) -> tuple[str, str]:
        """Name and title of the card, in the place of those of the component that reads the file."""
        card = read_card(self.path)
        return card.name, card.title or card.name

    def require_content(self) -> None:
        """Refuse a file that has changed since the grid was planned.

        Raises:
            UserError: it has, or is gone.
        """
        found = content_id(find_submission(self.file))
        if found != self.content:
            raise UserError(
                "the submission has changed since the grid was planned", where=self.file, found=found,
                expected=self.content, remedy="Run the same command again",
            )  # fmt: skip
