"""Files of a deployment on the host: written, put back, refused, retired."""

from __future__ import annotations

import stat
from dataclasses import replace
from pathlib import Path

import pytest

from cutover_agent import environment, install, systemd
from cutover_agent.install import put_back, refusal, retire_orphans
from cutover_agent.order import text_digest
from cutover_agent.store import Record, Serving, Store
from cutover_agent.systemd import UnitState
from tests.unit.agent.samples import order

UNIT = "vllm-small.service"
DOWN = UnitState("inactive", "dead", 0, 0, "", "disabled", "success")
UP = replace(DOWN, active="active", sub="running", main_pid=7)


class Host:
    """Folders of a host, and what was asked of its systemd."""

    def __init__(self, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.units, self.env = root / "units", root / "env"
        self.units.mkdir()
        self.store = Store(root / "store")
        self.store.prepare()
        self.asked: list[str] = []
        self.states: dict[str, UnitState] = {}
        monkeypatch.setattr(install, "UNITS", self.units)
        monkeypatch.setattr(environment, "FOLDER", self.env)
        monkeypatch.setattr(systemd, "call", self._call)
        monkeypatch.setattr(systemd, "state", lambda unit: self.states.get(unit, DOWN))

    def _call(self, *arguments: str, check: bool = True) -> str:
        self.asked.append(" ".join(arguments))
        return ""

    def install(self, unit: str, env: str) -> list[install.Replaced]:
        keep = self.store.keep
        return install.install(self.store, "small", UNIT, keep(unit), keep(env))

    def own(self, deployment: str, unit: str, *kinds: str) -> None:
        for kind in kinds:
            self.store.own(Record(f"{deployment}-{kind}", kind, deployment, unit))

    def files(self) -> dict[str, str]:
        folders = [folder for folder in (self.units, self.env) if folder.is_dir()]
        return {p.name: p.read_text() for folder in folders for p in folder.iterdir()}


@pytest.fixture
def host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Host:
    return Host(tmp_path, monkeypatch)


def test_an_install_writes_both_files_with_their_modes_and_reloads(host: Host) -> None:
    host.install("[Unit]\n", 'KEY="1"\n')
    assert host.files() == {UNIT: "[Unit]\n", "small.env": 'KEY="1"\n'}
    modes = [stat.S_IMODE(p.stat().st_mode) for p in (host.units / UNIT, host.env / "small.env")]
    assert modes == [0o644, 0o600]
    assert host.asked == ["daemon-reload"]
    assert host.store.installed()[str(host.units / UNIT)] == text_digest("[Unit]\n")


def test_files_as_wanted_are_left_alone(host: Host) -> None:
    host.install("[Unit]\n", "")
    host.asked.clear()
    assert host.install("[Unit]\n", "") == []
    assert host.asked == []


def test_what_is_prepared_replaces_nothing_and_leaves_nothing_where_it_is_put_back(
    host: Host,
) -> None:
    texts = (host.store.keep("new\n"), host.store.keep("A=2\n"))
    put_back(host.store, install.prepare(host.store, "small", UNIT, *texts).replaced)
    assert (host.files(), host.store.installed()) == ({}, {})
    host.install("old\n", "A=1\n")
    before = host.files()
    host.asked.clear()
    prepared = install.prepare(host.store, "small", UNIT, *texts)
    shown = host.files()
    assert (host.asked, shown[UNIT], shown["small.env"]) == ([], "old\n", "A=1\n")
    put_back(host.store, prepared.replaced)
    assert host.files() == before
    install.put(host.store, install.prepare(host.store, "small", UNIT, *texts))
    assert host.files() == {UNIT: "new\n", "small.env": "A=2\n"}


def test_what_was_not_there_is_gone_after_a_roll_back(host: Host) -> None:
    put_back(host.store, host.install("[Unit]\n", ""))
    assert (host.files(), host.store.installed()) == ({}, {})


@pytest.mark.parametrize("text", ["old\n", "edited by hand\r\n", "grüße\n", ""])
def test_what_was_there_comes_back_byte_for_byte(host: Host, text: str) -> None:
    host.install("first\n", "A=1\n")
    path = host.units / UNIT
    path.write_bytes(text.encode())
    put_back(host.store, host.install("new\n", "A=2\n"))
    assert path.read_bytes() == text.encode()
    assert host.files()["small.env"] == "A=1\n"
    assert stat.S_IMODE(path.stat().st_mode) == 0o644


def test_a_file_edited_by_hand_is_kept_by_name(host: Host) -> None:
    host.install("first\n", "")
    (host.units / UNIT).write_text("edited\n")
    host.install("new\n", "")
    saved = list((host.store.root / "saved").iterdir())
    assert [path.read_text() for path in saved] == ["edited\n"]


def test_a_file_that_is_no_text_stops_neither_install_nor_roll_back(host: Host) -> None:
    host.install("first\n", "")
    path = host.units / UNIT
    path.write_bytes(b"# caf\xe9\n")
    put_back(host.store, host.install("new\n", ""))
    assert path.read_bytes() == b"# caf\xe9\n"


def test_nothing_to_put_back_asks_nothing(host: Host) -> None:
    put_back(host.store, [])
    assert host.asked == []


def test_a_file_of_somebody_else_is_refused_and_ours_is_not(host: Host) -> None:
    assert refusal(host.store, UNIT) is None
    (host.units / UNIT).write_text("theirs\n")
    assert "was not written by cutover" in str(refusal(host.store, UNIT))
    (host.units / UNIT).unlink()
    host.install("[Unit]\n", "")
    assert refusal(host.store, UNIT) is None


def test_a_unit_by_hand_that_runs_is_replaced_and_put_back_byte_by_byte_and_as_theirs(
    host: Host,
) -> None:
    """It has a way back only while it runs; what is put back is not ours to remove later."""
    path, drop_in = host.units / UNIT, host.units / f"{UNIT}.d" / "more.conf"
    drop_in.parent.mkdir()
    for file, content, mode in ((path, b"theirs \xe9\n", 0o640), (drop_in, b"[Service]\n", 0o600)):
        file.write_bytes(content)
        file.chmod(mode)
    host.states[UNIT] = UP
    assert refusal(host.store, UNIT) is None
    keep = host.store.keep
    prepared = install.prepare(
        host.store, "small", UNIT, keep("[Unit]\n"), keep(""), drop_ins=[drop_in]
    )
    assert install.by_hand(host.store, UNIT), "the release stops it as what it still is"
    install.put(host.store, prepared)
    assert str(path) in host.store.installed()
    assert (path.read_text(), drop_in.exists()) == ("[Unit]\n", False)
    saved = sorted(each.read_bytes() for each in (host.store.root / "saved").iterdir())
    assert saved == [b"[Service]\n", b"theirs \xe9\n"]
    put_back(host.store, prepared.replaced)
    assert (path.read_bytes(), drop_in.read_bytes()) == (b"theirs \xe9\n", b"[Service]\n")
    assert [stat.S_IMODE(each.stat().st_mode) for each in (path, drop_in)] == [0o640, 0o600]
    assert host.store.installed() == {}
    assert install.by_hand(host.store, UNIT)


def test_a_masked_unit_is_refused_and_its_link_not_followed(host: Host) -> None:
    (host.units / UNIT).symlink_to("/dev/null")
    assert "is masked" in str(refusal(host.store, UNIT))


def test_a_link_to_elsewhere_is_refused_also_where_we_wrote_before(host: Host) -> None:
    host.install("[Unit]\n", "")
    (host.units / UNIT).unlink()
    (host.units / UNIT).symlink_to(host.env / "small.env")
    assert "was not written by cutover" in str(refusal(host.store, UNIT))


def test_a_failed_reload_leaves_a_way_back(host: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    """The files are written by then: whoever rolls back has to know."""
    host.install("first\n", "")

    def fail(*_: str, check: bool = True) -> str:
        raise systemd.SystemdError("systemctl daemon-reload: no")

    monkeypatch.setattr(systemd, "call", fail)
    with pytest.raises(systemd.SystemdError):
        host.install("new\n", "")
    assert host.files()[UNIT] == "first\n"


def test_a_file_is_known_as_ours_before_it_is_there(
    host: Host, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A power cut between the two must not leave a file that is refused for ever."""

    def cut(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(Store, "note_installed", cut)
    with pytest.raises(KeyboardInterrupt):
        host.install("[Unit]\n", "")
    assert refusal(host.store, UNIT) is None


def test_files_of_a_deployment_that_nobody_owns_are_removed(host: Host) -> None:
    host.own("big", "big.service", "unit", "env")
    host.install("[Unit]\n", "")
    lines = retire_orphans(host.store)
    assert len(lines) == 2
    assert (host.files(), host.store.installed()) == ({}, {})
    assert host.asked[-2:] == [f"disable {UNIT}", "daemon-reload"]
    assert not host.env.exists()


def test_files_of_an_owned_deployment_stay(host: Host) -> None:
    host.own("small", UNIT, "unit", "env", "service")
    host.install("[Unit]\n", "")
    assert retire_orphans(host.store) == []
    assert set(host.files()) == {UNIT, "small.env"}


def test_what_serves_stays_though_nobody_owns_it(host: Host) -> None:
    host.install("[Unit]\n", "")
    host.store.set_serving(Serving(order(), "e" * 64, "t", 1.0))
    host.states[UNIT] = UP
    (line,) = retire_orphans(host.store)
    assert "still serves" in line
    assert set(host.files()) == {UNIT, "small.env"}


def test_any_unit_that_runs_stays_not_only_the_committed_one(host: Host) -> None:
    host.install("[Unit]\n", "")
    host.states[UNIT] = UP
    retire_orphans(host.store)
    assert UNIT in host.files()
