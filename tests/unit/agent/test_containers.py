"""Containers are named as people name them; processes only show ids."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from cutover_agent import containers, install, survey

ID = "4f" * 32
DOCKER = f"""#!/bin/sh
echo "$*" >> "$0.calls"
[ "$4" = lab ] && echo {ID}
"""


def test_a_name_stands_for_its_id_and_its_engine_is_asked_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    docker = tmp_path / "docker"
    docker.write_text(DOCKER)
    docker.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/bin:/usr/bin")
    monkeypatch.setattr(containers, "ENGINES", ("docker",))
    containers.ids_of.cache_clear()
    for _ in range(2):
        assert containers.ids_of(("lab", "gone")) == {ID}
    calls = (tmp_path / "docker.calls").read_text().splitlines()
    assert calls == ["inspect --format {{.Id}} lab", "inspect --format {{.Id}} gone"]


def test_processes_of_a_container_named_in_also_end_are_found_by_its_id(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    nobody: Any = SimpleNamespace(
        units=frozenset, unit="a.service", policy="managed", also_end=("lab",), companions={},
        indices=frozenset(), processes={},
    )  # fmt: skip
    monkeypatch.setattr(
        containers, "ids_of", lambda names: frozenset({f"id of {n}" for n in names})
    )
    monkeypatch.setattr(install, "by_hand", lambda *_: False)
    monkeypatch.setattr(survey, "running_units", lambda units, seen: frozenset())
    monkeypatch.setattr(survey, "users_of", lambda *_: frozenset())
    rules = survey.rules_for(nobody, nobody, nobody, nobody)
    assert rules.also_end == {"lab", "id of lab"}
