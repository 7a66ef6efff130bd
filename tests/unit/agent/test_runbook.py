"""The runbook on the host: ours is kept current, a handwritten one stays."""

from __future__ import annotations

from pathlib import Path

import pytest

from cutover_agent import runbook
from cutover_agent.attempt import Attempt, Journal
from cutover_agent.store import Serving, Store
from tests.unit.agent.samples import order


@pytest.fixture
def store(tmp_path: Path) -> Store:
    made = Store(tmp_path / "store")
    made.prepare()
    return made


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "root" / "production.md"


def put(store: Store, path: Path, text: str = "text\n") -> str:
    where: str = runbook.put(store, "me", str(path), text)["runbook"]
    return where


def test_the_text_is_written_with_what_serves_and_what_happened(store: Store, path: Path) -> None:
    journal = Journal(store, "20250101T000000-aaaa")
    attempt = journal.create(order())
    attempt.outcome, attempt.error = "rolled-back", "ready: crashed\nmore"
    journal.save(attempt)
    put(store, path)
    text = path.read_text()
    assert text.startswith("text\n\n## Now\n\nNothing was committed to serve yet.\n")
    assert "- 20250101T000000-aaaa small: rolled-back, ready: crashed\n" in text
    store.set_serving(Serving(order(), "0", "t", 0.0, {"environment": ["A=b in 8 of 8"]}))
    runbook.write(store)
    assert "small serves at http://127.0.0.1:8000 since " in path.read_text()
    assert "- A=b in 8 of 8\n" in path.read_text()


def test_the_history_tells_where_the_time_without_a_model_went(store: Store, path: Path) -> None:
    journal = Journal(store, "20250101T000000-aaaa")
    attempt = journal.create(order())
    attempt.outcome = "serving"
    phases = {"prepare": 2.0, "stop": 1.5, "install": 0.01, "weights": 60.0, "smoke": 1.0}
    attempt.evidence = {"load_seconds": 62.0, "down_seconds": 64.1, "phases": phases}
    journal.save(attempt)
    put(store, path)
    told = "small: serving, load 62.0 s, down 64.1 s (stop 1.5 s, weights 60.0 s)\n"
    assert told in path.read_text()


def test_a_handwritten_one_is_never_touched_and_ours_lies_beside_it(
    store: Store, path: Path
) -> None:
    path.parent.mkdir()
    path.write_text("by hand\n")
    beside = path.with_name("production.cutover.md")
    assert put(store, path) == str(beside)
    assert path.read_text() == "by hand\n"
    runbook.drop(store, "me")
    assert path.read_text() == "by hand\n"
    assert not beside.exists()


def test_one_of_ours_that_was_edited_counts_as_handwritten(store: Store, path: Path) -> None:
    put(store, path)
    path.write_text("mine now\n")
    assert put(store, path, "new\n").endswith("production.cutover.md")
    assert path.read_text() == "mine now\n"


def test_a_new_text_replaces_ours_and_another_path_takes_it_along(store: Store, path: Path) -> None:
    put(store, path)
    put(store, path, "new\n")
    assert path.read_text().startswith("new\n")
    other = path.with_name("other.md")
    put(store, other)
    assert other.exists() and not path.exists()


def test_only_the_owner_takes_it_away(store: Store, path: Path) -> None:
    put(store, path)
    runbook.drop(store, "somebody")
    assert path.exists()
    runbook.drop(store, "me")
    assert not path.exists()
    assert runbook.write(store) == ""


def test_the_history_is_cut_to_the_newest() -> None:
    many = [(f"t{n}", Attempt(f"t{n}", "o", "d", "b", outcome="serving")) for n in range(99)]
    text = runbook.history(None, many)
    assert text.count("- t") == runbook.MOST_LINES and "- t0 d: serving" in text
