from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from practice_engine import behaviour, options, weights
from practice_engine.answers import answer
from practice_engine.misbehaviour import ERRORS, MISBEHAVIOURS, EngineError, reach

from sandbox.checkpoint import make_checkpoint


def test_options_take_values_lists_flags_and_numbers_below_zero() -> None:
    argv = ["--served-model-name", "a", "b", "--tp=8", "--trust_remote_code", "--seed", "-1"]
    assert options.parse(argv) == {
        "served-model-name": ["a", "b"],
        "tp": ["8"],
        "trust-remote-code": [],
        "seed": ["-1"],
    }


def test_options_are_unknown_only_against_a_file_of_known_ones(tmp_path: Path) -> None:
    known = tmp_path / "flags.txt"
    known.write_text("--model\n--port\n")
    given = options.parse(["--model", "x", "--prot", "8000"])
    assert options.unknown(given, str(known)) == ["--prot"]
    assert options.unknown(given, None) == []


def test_a_model_outranks_its_module_which_outranks_the_top_level(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "engine.json"
    monkeypatch.setattr(behaviour, "FILE", file)
    said = {"load_seconds": 1, "stop_seconds": 1, "token_seconds": 1}
    said["modules"] = {"vllm": {"stop_seconds": 2, "token_seconds": 2}}  # type: ignore[assignment]
    said["models"] = {"m": {"token_seconds": 3}}  # type: ignore[assignment]
    file.write_text(json.dumps(said))
    merged = behaviour.read("vllm", ["other", "m"])
    names = ("load_seconds", "stop_seconds", "token_seconds")
    assert [merged[name] for name in names] == [1, 2, 3]
    assert behaviour.read("sglang", ["x"])["stop_seconds"] == 1


def test_an_unknown_behaviour_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "engine.json"
    monkeypatch.setattr(behaviour, "FILE", file)
    file.write_text('{"cash": "loading"}')
    with pytest.raises(SystemExit, match="cash"):
        behaviour.read("vllm", [])


def test_every_misbehaviour_has_its_key_and_every_error_its_text() -> None:
    assert set(MISBEHAVIOURS) <= set(behaviour.DEFAULTS)
    for name in ERRORS:
        with pytest.raises(EngineError):
            reach("loading", {**behaviour.DEFAULTS, "crash": "loading", "error": name})
    reach("loading", {**behaviour.DEFAULTS, "crash": "starting"})


def test_shards_are_read_in_order_and_a_missing_one_is_named(tmp_path: Path) -> None:
    make_checkpoint(tmp_path / "m", shards=4, shard_bytes=64, config={})
    shards = weights.shards_of(tmp_path / "m")
    assert list(weights.read_shards(shards, (0, 2), 0)) == [1, 2, 3, 4]
    shards[2].unlink()
    with pytest.raises(FileNotFoundError, match="model-00003-of-00004"):
        list(weights.read_shards(shards, (0, 2), 0))


def test_progress_looks_like_the_real_line(capsys: pytest.CaptureFixture[str]) -> None:
    progress = weights.Progress(119)
    progress.show(0, "")
    progress.show(119, "(Worker_TP0 pid=7) ")
    first, last = capsys.readouterr().err.split("\n")[:2]
    assert first.startswith(
        "\rLoading safetensors checkpoint shards:   0% Completed | 0/119 [00:00<?"
    )
    form = r"\(Worker_TP0 pid=7\) \rLoading safetensors checkpoint shards: 100% Completed "
    assert re.fullmatch(form + r"\| 119/119 \[\d\d:\d\d<\d\d:\d\d, +[\d.]+it/s\]", last)


def test_a_reasoning_model_with_few_tokens_thinks_and_says_nothing() -> None:
    question = "What is the capital of France?"
    assert answer(question, None, reasons=True, instead=None).content == ["Paris"]
    short = answer(question, 5, reasons=True, instead=None)
    assert (short.tokens, short.content, short.cut) == (5, [], True)
    assert answer("Tell me more", 100, reasons=False, instead=None).tokens == 100
