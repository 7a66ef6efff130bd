"""What a transaction says and keeps holds no secret of either model."""

from __future__ import annotations

from pathlib import Path

from cutover_agent.attempt import Journal
from cutover_agent.progress import Progress
from cutover_agent.store import Serving, Store
from tests.unit.agent.samples import order


def test_secrets_that_a_server_gives_back_in_an_error_are_in_no_line_and_no_error(
    tmp_path: Path,
) -> None:
    store = Store(tmp_path)
    store.prepare()
    journal = Journal(store, "t")
    new, old = store.keep('VLLM_API_KEY="poison-new"\n'), store.keep('HF_TOKEN="poison-old"\n')
    progress = Progress(journal, journal.create(order(), new))
    journal.set_previous(Serving(order(), old, "before", 1.0))
    said = "the smoke request is answered 401: you sent poison-new, I have poison-old"
    progress.tell(said)
    progress.end("rolled-back", said)
    kept = [path.read_text() for path in journal.folder.iterdir()]
    assert not [text for text in kept if "poison" in text]
    assert journal.events()[0]["text"].count("[secret]") == 2
