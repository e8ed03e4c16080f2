"""A Ray that does not start ends in a sentence, and its folder is gone."""

from __future__ import annotations

from pathlib import Path

import pytest

from geco_ray.errors import ResourceError
from geco_ray.plan.config import RunSettings
from geco_ray.runtime import session


def test_a_ray_that_does_not_start_is_said_with_the_remedy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(settings: RunSettings, folder: str) -> None:
        assert Path(folder).is_dir()
        raise Exception("The current node timed out during startup.\nThis could happen because ...")

    base = tmp_path if len(str(tmp_path)) < 30 else Path("/tmp")
    monkeypatch.setattr("tempfile.tempdir", str(base))
    before = set(base.glob("geco-ray-*"))
    monkeypatch.setattr(session, "_start_local", fail)
    with (
        pytest.raises(ResourceError, match=r"did not start .*timed out during startup\). Finished cells are kept"),
        session.ray_session(RunSettings()),
    ):
        pass
    assert set(base.glob("geco-ray-*")) <= before
