"""When a checkpoint is read ahead, and what is told of it; a failure is only a warning."""

from __future__ import annotations

import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from cutover_agent import launch, systemd, warm, warm_report
from cutover_agent.converge import Situation
from cutover_agent.order import Files, Order, Warm
from cutover_agent.store import Store
from cutover_agent.systemd import UnitState
from sandbox.checkpoint import make_checkpoint
from tests.unit.agent.samples import order

GB = 10**9
DOWN = UnitState("inactive", "dead", 0, 0, "", "", "")
IDLE = Situation(None, False, False, False, 0.0)
SERVES = Situation(None, False, True, True, 0.0)


@pytest.fixture
def store(tmp_path: Path) -> Store:
    made = Store(tmp_path / "store")
    made.prepare()
    return made


@pytest.fixture
def asked(store: Store, tmp_path: Path) -> Order:
    """An order for a checkpoint of 24 MiB and its draft."""
    for name, shards in (("model", 5), ("draft", 1)):
        folder = tmp_path / name
        make_checkpoint(folder, shards=shards, shard_bytes=4 << 20, config={})
    files = Files(draft=str(tmp_path / "draft"))
    made = order(checkpoint=str(tmp_path / "model"), files=files, warm=Warm(read=True))
    store.set_staged(made)
    return made


@pytest.mark.parametrize(
    ("missing", "available", "total", "fits"),
    [
        (540, 700, 768, True),
        (540, 600, 768, False),
        (100, 200, 768, True),
        (540, 10, 768, False),
        (0, 80, 768, True),
    ],
)
def test_it_is_read_where_what_is_missing_fits_beside_a_tenth_of_all_memory(
    missing: int, available: int, total: int, fits: bool
) -> None:
    said = warm.why_not(540 * GB, missing * GB, available * GB, total * GB)
    assert (said == "") is fits
    if not fits:
        assert said.startswith("540 GB of its 540 GB would have to fit into ")


def test_the_unit_reads_shards_and_draft_in_order_and_tells_what_is_in_memory(
    store: Store, asked: Order
) -> None:
    names = [f"{path.parent.name}/{path.name}" for path in warm.weights(asked)]
    assert names == [
        *(f"model/model-{n:05d}-of-00005.safetensors" for n in range(1, 6)),
        "draft/model-00001-of-00001.safetensors",
    ]
    warm.run(store)
    report = warm_report.take(store, asked)
    assert report and report["percent"] >= 95
    assert report["line"] == "100 % of 25 MB in memory"
    assert warm_report.take(store, asked) is None, "told once"


def test_what_does_not_fit_is_not_read_and_says_how_much_it_lacks(
    store: Store, asked: Order, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(warm, "memory_mib", lambda: {"total": 100, "available": 9})
    monkeypatch.setattr(warm, "resident", lambda _: 0)
    warm.run(store)
    told = warm_report.load(store)["line"]
    assert told.startswith("not read ahead: 25 MB of its 25 MB would have to fit into 0 MB")
    assert warm_report.take(store, asked) is None


def test_figures_of_another_order_are_not_taken_for_this_one(store: Store, asked: Order) -> None:
    warm.run(store)
    assert warm_report.take(store, replace(asked, deployment="other")) is None


@pytest.mark.parametrize(
    ("wanted", "seen", "starts"),
    [
        (Warm(read=True), IDLE, 1),
        (Warm(read=True), SERVES, 0),
        (Warm(read=False), IDLE, 0),
        (Warm(read=False, why_not="its loader reads past the page cache"), IDLE, 0),
    ],
)
def test_it_is_read_only_where_that_is_wanted_and_a_model_is_about_to_load(
    store: Store,
    asked: Order,
    wanted: Warm,
    seen: Situation,
    starts: int,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    started: list[str] = []
    monkeypatch.setattr(warm, "look", lambda *_: seen)
    monkeypatch.setattr(systemd, "state", lambda _: DOWN)
    monkeypatch.setattr(launch, "warming", started.append)
    warm.step(store, replace(asked, warm=wanted))
    assert len(started) == starts
    assert wanted.why_not in capsys.readouterr().err


@pytest.mark.parametrize(
    "problem",
    [OSError(2, "systemd-run"), subprocess.CalledProcessError(1, "systemd-run"),
     systemd.SystemdError("no")],
    ids=repr,
)  # fmt: skip
def test_whatever_fails_is_a_warning(
    store: Store,
    asked: Order,
    problem: Exception,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def fail(_: str) -> None:
        raise problem

    monkeypatch.setattr(warm, "look", lambda *_: IDLE)
    monkeypatch.setattr(launch, "warming", fail)
    warm.step(store, asked)
    assert "warning: small is not read ahead" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("report", "warns"),
    [
        ({}, True),
        ({"line": "3 GB of 540 GB in memory"}, True),
        ({"line": "not read ahead: too large", "over": True}, False),
        ({"line": "97 % of 540 GB in memory", "over": True, "percent": 97.0}, False),
    ],
)
def test_a_unit_that_ended_before_it_was_done_is_told(
    store: Store,
    asked: Order,
    report: dict[str, object],
    warns: bool,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(warm, "look", lambda *_: IDLE)
    monkeypatch.setattr(systemd, "state", lambda _: DOWN)
    monkeypatch.setattr(launch, "warming", lambda _: warm_report.save(store, asked, report))
    warm.step(store, asked)
    said = capsys.readouterr().err
    assert ("warning: small is not read ahead: see journalctl" in said) is warns
    assert str(report.get("line", "")) in said


def test_a_checkpoint_that_cannot_be_read_ends_the_unit_and_leaves_no_figures(
    store: Store, asked: Order
) -> None:
    (Path(asked.checkpoint) / "model-00003-of-00005.safetensors").unlink()
    with pytest.raises(OSError):
        warm.run(store)
    assert warm_report.take(store, asked) is None


@pytest.mark.parametrize(("nodes", "interleaved"), [("0\n", False), ("0-1\n", True), (None, False)])
def test_on_several_numa_nodes_the_pages_are_spread(
    nodes: str | None, interleaved: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ran: list[list[str]] = []
    if nodes:
        (tmp_path / "online").write_text(nodes)
    monkeypatch.setattr(launch, "NODES", tmp_path / "online")
    monkeypatch.setattr(systemd, "call", lambda *_, check=True: "")
    monkeypatch.setattr(subprocess, "run", lambda argv, **_: ran.append(argv))
    launch.warming("small")
    assert ("--property=NUMAPolicy=interleave" in ran[0]) is interleaved
    assert ("--property=NUMAMask=0-1" in ran[0]) is interleaved
