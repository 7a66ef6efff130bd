"""How often a resource was repaired, and what a preview says in plain words."""

from __future__ import annotations

import json
from typing import Any

import pytest

from cutover.facts import NO_FACTS, Facts, NoFacts, Repair, parse, repair_of
from cutover.outlook import duration, sentences
from cutover_agent.order import Deadlines, Order, Probe

NOW = 1_800_000_000


def facts(**changes: Any) -> Facts:
    value: dict[str, Any] = {
        "version": 1,
        "known": True,
        "put": ["unit:big"],
        "repairs": {},
        "drift": {},
        "busy": "",
        "serves": None,
        "gpus": {"problem": "", "used_mib": [0] * 8},
        "holders": [],
        "persistence": "on",
        "loads": {},
        "bound": 4185,
    }
    return Facts({**value, **changes})


def order(**changes: Any) -> Order:
    fields: dict[str, Any] = {
        "host": "gpu-box",
        "host_gpus": 8,
        "deployment": "minimax-m25",
        "unit": "vllm-minimax-m25.service",
        "unit_digest": "new",
        "gpus": tuple(range(8)),
        "checkpoint": "/models/m",
        "probe": Probe("http://127.0.0.1:8000", "m"),
        "deadlines": Deadlines(stop=60, release=60, gate=60, load=240, smoke=60),
    }
    return Order(**{**fields, **changes})


SERVES = {
    "deployment": "kimi-k25",
    "unit": "vllm-kimi-k25.service",
    "unit_digest": "old",
    "healthy": True,
    "loading": False,
    "seconds": 3 * 86400 + 700,
    "state": "active (running)",
}


def test_nothing_drifted_keeps_the_count_that_the_host_remembers() -> None:
    assert repair_of(facts(), "unit:big", NOW) == Repair(True, 0)
    assert repair_of(facts(repairs={"unit:big": 4}), "unit:big", NOW) == Repair(True, 4)
    assert repair_of(facts(), "unit:big", NOW).words == ()


def test_drift_counts_one_more_and_says_why() -> None:
    found = repair_of(facts(repairs={"stage": 4}, drift={"stage": ["it is dead"]}), "stage", NOW)
    assert found == Repair(True, 5, ("it is dead",))
    assert found.words == ("--repair", "5")


@pytest.mark.parametrize("root", ["agent", "stage", "unit:big", "env:big"])
def test_a_host_that_has_forgotten_gets_a_count_that_no_state_can_hold(root: str) -> None:
    assert repair_of(facts(known=False), root, NOW).count == NOW


def test_a_put_that_the_host_has_forgotten_is_put_again_and_no_other() -> None:
    assert repair_of(facts(put=[]), "unit:big", NOW).count == NOW
    assert repair_of(facts(put=["unit:big"]), "unit:big", NOW).count == 0


@pytest.mark.parametrize("answer", [NO_FACTS, NoFacts("no route")])
def test_without_facts_the_count_stays_what_it_was(answer: NoFacts) -> None:
    assert not repair_of(answer, "stage", NOW).known


def test_an_answer_that_cannot_be_read_is_no_answer() -> None:
    for text in ("", "[]", "{}", '{"version": 2}', "sh: not found"):
        assert isinstance(parse(text), NoFacts)
    assert parse(json.dumps({"version": 1, "known": False})) == Facts(
        {"version": 1, "known": False}
    )


def test_the_headline_says_what_serves_what_comes_and_what_it_costs() -> None:
    said = sentences(
        facts(
            serves=SERVES,
            gpus={"problem": "", "used_mib": [72500] * 8},
            loads={"minimax-m25": 161.2},
        ),
        order(),
    )
    assert said == [
        "kimi-k25 serves (3 d, 8 \N{MULTIPLICATION SIGN} 70.8 GiB) -> minimax-m25; nothing serves "
        "for about 3 min 1 s (load 2 min 41 s last time), at most 1 h 9 min if it fails; back to "
        "kimi-k25 on failure"
    ]


def test_what_the_host_measured_of_the_last_switch_is_what_the_next_one_is_said_to_take() -> None:
    parts = {"prepare": 99.0, "stop": 4.0, "gate": 1.0, "weights": 120.0, "ready": 41.2, "smoke": 9}
    (said,) = sentences(
        facts(serves=SERVES, loads={"minimax-m25": 161.2}, phases={"minimax-m25": parts}), order()
    )
    assert (
        "nothing serves for about 2 min 46 s (load 2 min 41 s, of it 2 min for the weights last "
        "time)"
    ) in said


def test_a_model_that_stays_is_only_named() -> None:
    same = order(unit_digest="old", deployment="kimi-k25")
    assert sentences(facts(serves=SERVES), same) == ["kimi-k25 serves (3 d)"]
    loads = {**SERVES, "healthy": False, "loading": True, "seconds": 20}
    assert sentences(facts(serves=loads), same) == ["kimi-k25 loads (20 s)"]


def test_a_model_that_was_never_loaded_has_only_an_upper_limit() -> None:
    (said,) = sentences(facts(), order())
    assert said == (
        "nothing of ours serves -> minimax-m25; ready in a time not measured yet "
        "(load at most 4 min), at most 1 h 9 min if it fails; there is no way back"
    )
    headline, ends = sentences(facts(ends=["stops handmade.service"]), order())
    assert "; nothing serves for a time not measured yet (load at most 4 min), at " in headline
    assert ends == "the cutover stops handmade.service"


def test_why_a_model_of_the_same_unit_is_started_anew_is_told_with_what_that_costs() -> None:
    again = "the secrets of kimi-k25 have changed: it starts anew to get them"
    order_ = order(unit_digest="old", deployment="kimi-k25")
    told = facts(serves=SERVES, again=again, ends=["stops vllm-kimi-k25.service"])
    first, second = sentences(told, order_)
    assert first.startswith("kimi-k25 serves (3 d) -> kimi-k25; nothing serves for a time")
    assert second == again


def test_foreign_holders_are_named_and_counted_and_refusals_told() -> None:
    holder = {"pid": 7, "title": "python3 train.py", "user": "ada", "gpus": [5], "mib": 1024}
    said = sentences(
        facts(
            holders=[{**holder, "pid": pid, "ours": pid > 7} for pid in (7, 8)],
            refusals=["the checkpoint /models/m is not there"],
            persistence="off",
        ),
        order(),
    )
    assert said[1:3] == [
        "`stage` would refuse: the checkpoint /models/m is not there",
        "GPUs are also held by pid 7 (python3 train.py; ada; GPU 5, 1024 MiB)",
    ]
    assert "persistence mode is off" in said[3]
    many = [{**holder, "pid": pid, "ours": False} for pid in range(20)]
    assert sentences(facts(holders=many), order())[1].endswith("and 16 more")


def test_whatever_a_host_says_a_preview_shows_a_few_lines_of_it() -> None:
    holder = {"pid": 7, "title": "t" * 80, "user": "ada", "gpus": [5], "mib": 1, "ours": False}
    told = facts(
        holders=[holder] * 500,
        refusals=["the checkpoint is not there"] * 500,
        by_hand={"differences": ["variable A: not set"] * 500, "pending": []},
        drift={"unit:big": [f"the drop-in {'x' * 5000}"] * 500},
    )
    for lines in (sentences(told, order()), repair_of(told, "unit:big", NOW).reasons):
        assert lines[-1].startswith("and ")
        assert len(lines) <= 21
        assert sum(map(len, lines)) < 20_000


@pytest.mark.parametrize(
    ("seconds", "said"),
    [(0.4, "0 s"), (59, "59 s"), (60, "1 min"), (161, "2 min 41 s"), (3600, "1 h"),
     (11100, "3 h 5 min"), (86400, "1 d"), (300000, "3 d")],
)  # fmt: skip
def test_durations(seconds: float, said: str) -> None:
    assert duration(seconds) == said
