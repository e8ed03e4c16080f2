"""What a node of a cluster is refused for, each with its address and the remedy."""

from __future__ import annotations

from typing import Any

import pytest

from geco_ray.errors import ResourceError, StorageError
from geco_ray.runtime.installed import facts_here
from geco_ray.runtime.probe import refuse

PLACE = "10.0.0.7 (worker)"
EXPECTED = facts_here() | {"marker": "abc"}


def test_a_node_that_is_as_this_machine_is_taken() -> None:
    refuse(PLACE, facts_here() | {"marker": "abc"}, EXPECTED)


@pytest.mark.parametrize("name", ["Python", "Ray", "geco_ray", "plug-ins"])
def test_another_version_or_plug_in_is_refused(name: str) -> None:
    found: dict[str, Any] = EXPECTED | {name: "other"}
    with pytest.raises(ResourceError, match=rf"10\.0\.0\.7 \(worker\) has another {name} .*found 'other'.*Install"):
        refuse(PLACE, found, EXPECTED)


def test_a_node_that_gives_no_answer_is_refused_with_what_ray_said() -> None:
    with pytest.raises(ResourceError, match=r"10\.0\.0\.7 .* no answer within 30 s.*auth_token"):
        refuse(PLACE, {"error": "no answer within 30 s"}, EXPECTED)


def test_a_node_that_does_not_see_the_run_folder_is_a_matter_of_storage() -> None:
    with pytest.raises(StorageError, match=r"10\.0\.0\.7 .* does not see the run folder \(FileNotFoundError.*s3://"):
        refuse(PLACE, EXPECTED | {"marker": "FileNotFoundError: gone"}, EXPECTED)
    assert (ResourceError.exit_code, StorageError.exit_code) == (3, 5)
