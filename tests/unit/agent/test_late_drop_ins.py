"""Which drop-ins are drift, and which were there before the unit was ours."""

from __future__ import annotations

from pathlib import Path

import pytest

from cutover_agent import manifest
from cutover_agent.store import Store


def test_only_a_drop_in_of_a_unit_that_was_written_here_is_taken_away(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(manifest, "UNITS", tmp_path)
    monkeypatch.setattr(manifest, "OVERRIDES", (tmp_path,))
    store = Store(tmp_path / "store")
    store.prepare()
    override = tmp_path / "model.service.d" / "override.conf"
    override.parent.mkdir()
    override.write_text("[Service]\nEnvironment=A=1\n")
    assert manifest.late_drop_ins(store, "model.service") == []
    (tmp_path / "model.service").write_text("[Service]\n")
    store.note_installed(tmp_path / "model.service", store.keep("[Service]\n"))
    assert manifest.late_drop_ins(store, "model.service") == [override]
