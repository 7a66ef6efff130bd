"""What GPUs say, and what the gate makes of it. Ids are those of the field cases."""

from __future__ import annotations

import itertools
from dataclasses import replace

import pytest

from cutover_agent.gate import Passage, judge, threshold, wait_open
from cutover_agent.gpus import Gpu, Reading, parse_gpus, parse_rows
from cutover_agent.health import judge_health, unknown_field
from cutover_agent.obstacles import obstacles
from cutover_agent.order import Order
from cutover_agent.refusal import why_closed
from cutover_agent.release_plan import plan_release
from cutover_agent.scope import Scope, ScopeError, scope_at_hand, scope_of, short_uuids
from tests.unit.agent.samples import (
    VLLM,
    HandClock,
    holder,
    landscape,
    order,
    process,
    reading,
    rules,
    scope,
)

UUIDS = [f"GPU-1a2b3c4{i}-0000-1111-2222-333344445555" for i in range(8)]
LOST = "Unable to determine the device handle for GPU0000:BA:00.0: Unknown Error\n"
SEVEN = "".join(f"{i}, {UUIDS[i]}, 0\n" for i in range(7))
MISMATCH = "Failed to initialize NVML: Driver/library version mismatch\n"
MPS = holder(process(412, "nvidia-cuda-mps-server"), 27)


def closed(readings: list[Reading], idle_mib: int = 0) -> str:
    """Why a gate with these readings stays closed; empty when it opens."""
    where = scope(readings[-1], idle_mib=idle_mib)
    verdict = judge(readings, where)
    seen = landscape(seen=readings[-1])
    passage = Passage(verdict, tuple(readings), 1.0)
    return "" if verdict.open else why_closed(passage, where, plan_release(seen, rules()), seen)


@pytest.mark.parametrize(
    ("case", "series", "idle_mib"),
    [
        ("F16 idle cards", [reading(2, 4, 15, 32)] * 3, 32),
        (
            "F18 memory that jumps",
            [reading(mib) for mib in (70000, 41000, 900, 38000, 900, 900, 900)],
            900,
        ),
        ("F23 MPS", [reading(27, 27)] * 3, 27),
    ],
)
def test_a_constant_rest_passes_only_with_idle_mib_and_else_gives_the_line_to_paste(
    case: str, series: list[Reading], idle_mib: int
) -> None:
    assert closed(series, idle_mib) == "", case
    assert closed(series, idle_mib - 1) != ""
    assert closed(series).endswith(
        "add this line under `gpu-box:` in cutover:hosts of the stack's config:\n"
        f"      idle_mib: {idle_mib}"
    )


def test_a_new_model_never_sees_memory_that_is_still_being_let_go() -> None:
    """F19: it would abort when free memory grows while it measures."""
    falling = [reading(mib, mib) for mib in range(72000, 0, -9000)]
    for end in range(1, len(falling) + 1):
        assert closed(falling[:end]) != ""
    zeros = [reading(0, 0)] * 3
    assert [closed([*falling, *zeros[:n]]) == "" for n in (1, 2, 3)] == [False, False, True]
    one_late = [*falling, *zeros[:2], reading(0, 1), *zeros[:2]]
    assert closed(one_late) != "" and closed([*one_late, zeros[0]]) == ""


def test_one_low_reading_is_not_the_end_of_a_release() -> None:
    series = [reading(mib) for mib in (70000, 41000, 900, 38000, 900, 900)]
    assert closed(series, 900) != ""
    assert closed([*series, reading(900)], 900) == ""


def test_memory_that_changes_or_is_much_is_no_idle_card() -> None:
    for series in ([reading(900), reading(901), reading(900)], [reading(5000)] * 3):
        assert "idle_mib:" not in closed(series)
        assert "no process is seen that holds it" in closed(series)


def test_the_threshold_is_printed_while_waiting() -> None:
    assert threshold(scope(reading(0), idle_mib=32)) == "at most 32 MiB (idle_mib)"


@pytest.mark.parametrize("idle_mib", [0, 26, 27])
def test_memory_of_mps_is_refused_while_the_old_model_serves_unless_it_is_allowed(
    idle_mib: int,
) -> None:
    old = holder(process(10, *VLLM, unit="vllm-small.service"), 70000)
    seen = landscape(MPS, old, seen=reading(70036))
    plan = plan_release(
        seen,
        rules(ours=frozenset({"vllm-small.service"}), running=frozenset({"vllm-small.service"})),
    )
    said = obstacles(plan, seen, scope(seen.reading, idle_mib=idle_mib))
    assert bool(said) is (idle_mib < 27)
    if said:
        assert "stop MPS" in said[0] and said[0].endswith("idle_mib: 27")


@pytest.mark.parametrize(
    ("case", "code", "stdout", "says"),
    [
        (
            "F11 MIG",
            0,
            f"0, {UUIDS[0]}, [Insufficient Permissions]\n",
            "the memory of GPU 0 cannot be read: nvidia-smi says '[Insufficient Permissions]'",
        ),
        ("F12 a lost card", 0, LOST + SEVEN, "7 of 8 GPUs answered, BA:00.0 lost"),
        ("F12 with an exit status", 15, LOST + SEVEN, "7 of 8 GPUs answered, BA:00.0 lost"),
        ("F14 nothing", 9, "", "nvidia-smi exits 9"),
        ("F26 an updated driver", 18, MISMATCH, "until the host is rebooted"),
    ],
)
def test_a_broken_answer_says_what_is_wrong_and_is_never_free(
    case: str, code: int, stdout: str, says: str
) -> None:
    got = parse_gpus(code, stdout)
    assert says in got.problem, case
    for count in (7, 8):
        assert not judge([got] * 5, Scope("box", count, got.gpus, 1024)).open


def test_a_zombie_is_listed_without_a_name_and_still_is_a_row() -> None:
    """F06."""
    rows = parse_rows(0, f"31001, {UUIDS[0]}, 5371\n")
    assert rows is not None and (rows[0].pid, rows[0].mib) == (31001, 5371)


@pytest.mark.parametrize("first", [0, 900])
def test_an_answer_after_25_seconds_is_slow_not_broken(
    first: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """F09: the deadline of 30 s moves, and no two questions overlap."""
    time = HandClock(monkeypatch)
    asked: list[float] = []
    series = iter([first, 0, 0, 0, 0])

    def slow() -> Reading:
        asked.append(time.now)
        time.add(25)
        return reading(next(series))

    passage = wait_open(slow, scope(reading(0)), 30, lambda _: None)
    assert passage.verdict.open
    assert all(later - earlier >= 25 for earlier, later in itertools.pairwise(asked))


def test_a_tool_that_fails_slowly_does_not_move_the_deadline(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    time = HandClock(monkeypatch)

    def hang() -> Reading:
        time.add(60)
        return reading(problem="nvidia-smi exits 124: no answer after 60 s")

    assert not wait_open(hang, scope(reading(0)), 30, lambda _: None).verdict.open
    assert time.now == 60


CARD = {"index": "5", "uuid": UUIDS[5], "fabric.state": "Completed", "fabric.status": "Success"}


@pytest.mark.parametrize(
    ("case", "says", "refuses", "warns"),
    [
        ("F27 nothing", {}, "", ""),
        ("F27 no such column", {"remapped_rows.pending": "[N/A]"}, "", ""),
        ("F27 pending", {"remapped_rows.pending": "Yes"}, "", "a row remap is pending"),
        ("F27 pending as a number", {"remapped_rows.pending": "1"}, "", "a row remap is pending"),
        ("F27 failed", {"remapped_rows.failure": "Yes"}, "a row remap has failed", ""),
        ("F27 failed, a number", {"remapped_rows.failure": "1"}, "a row remap has failed", ""),
        ("F11 partitioned", {"mig.mode.current": "Enabled"}, "partitioned (MIG)", ""),
        ("fabric", {"fabric.state": "In Progress"}, "the fabric is not ready (In Progress)", ""),
        ("fabric", {"fabric.status": "Failure"}, "the fabric has failed (Failure)", ""),
        ("no fabric", {"fabric.state": "N/A", "fabric.status": "N/A"}, "", ""),
        ("recovery", {"gpu_recovery_action": "Reset"}, "", "asks for recovery (Reset)"),
    ],
)
def test_health_is_judged_before_the_old_model_is_touched(
    case: str, says: dict[str, str], refuses: str, warns: str
) -> None:
    found = judge_health([{**CARD, **says}], {UUIDS[5]})
    assert [refuses in text for text in found.refusals] == [True] * bool(refuses), case
    assert [warns in text for text in found.warnings] == [True] * bool(warns)


def test_a_bad_card_is_only_told_where_the_host_says_so_or_nobody_uses_it() -> None:
    bad = [{**CARD, "remapped_rows.failure": "Yes"}]
    for found in (judge_health(bad, {UUIDS[5]}, "warn"), judge_health(bad, {UUIDS[0]})):
        assert found.refusals == () and "remap has failed" in found.warnings[0]


def test_a_field_that_the_driver_does_not_know_is_named() -> None:
    said = 'Field "fabric.state" is not a valid field to query.\n'
    assert unknown_field(2, said) == "fabric.state"
    assert unknown_field(0, "") == ""


EIGHT = Reading(tuple(Gpu(i, uuid, 0) for i, uuid in enumerate(UUIDS)))


def wants(*uuids: str, gpus: tuple[int, ...] = (2, 3)) -> Order:
    return order(gpus=gpus, gpu_uuids=uuids)


def test_a_deployments_gpus_are_watched_by_uuid() -> None:
    """F30: the index of the status tool and CUDA's may differ; the UUID does not."""
    where = scope_of(wants(), EIGHT)
    assert where.uuids == {UUIDS[2], UUIDS[3]}
    swapped = replace(EIGHT, gpus=tuple(replace(g, index=7 - g.index) for g in EIGHT.gpus))
    busy = replace(
        swapped, gpus=tuple(replace(g, used_mib=9 * (g.uuid == UUIDS[2])) for g in swapped.gpus)
    )
    assert "GPU 5 9 MiB" in judge([busy] * 3, where).reason


def test_a_card_that_was_exchanged_for_another_is_not_free() -> None:
    where = scope_of(wants(), EIGHT)
    other = replace(
        EIGHT, gpus=(replace(EIGHT.gpus[2], uuid="GPU-ffff"), *EIGHT.gpus[:2], *EIGHT.gpus[3:])
    )
    assert f"{UUIDS[2]} does not answer any more" in judge([other] * 3, where).reason


def test_a_short_uuid_is_completed_from_what_is_there_or_refused_with_the_full_ones() -> None:
    """F31."""
    assert scope_of(wants("GPU-1a2b3c44"), EIGHT).uuids == {UUIDS[4]}
    for wrong in ("GPU-1a2b3c4", "GPU-dead", "MIG-1a2b"):
        with pytest.raises(ScopeError) as refused:
            scope_of(wants(wrong), EIGHT)
        assert all(uuid in str(refused.value) for uuid in UUIDS)


def test_a_short_uuid_is_refused_in_time_with_the_full_one_to_write() -> None:
    """F31: CUDA would take it, but an engine asks the management library, which does not."""
    (said,) = short_uuids(wants(UUIDS[3], "GPU-1a2b3c44"), EIGHT)
    assert "gpus: GPU-1a2b3c44 is a short UUID" in said and f"write {UUIDS[4]};" in said
    assert all(uuid in said for uuid in UUIDS)
    assert short_uuids(wants(*UUIDS[2:4]), EIGHT) == []


def test_gpus_named_by_uuid_are_never_assumed_to_be_the_first_ones() -> None:
    broken = scope_at_hand(wants(UUIDS[6]), replace(EIGHT, problem="nvidia-smi exits 9"))
    assert broken.indices == frozenset()
    assert scope_at_hand(wants(UUIDS[6]), EIGHT).indices == {6}


def test_gpus_that_were_only_assumed_are_never_free() -> None:
    broken = scope_at_hand(wants(), replace(EIGHT, problem="nvidia-smi exits 9"))
    assert broken.indices == {2, 3}
    assert not judge([EIGHT] * 3, broken).open
    assert scope_at_hand(wants(), EIGHT) == scope_of(wants(), EIGHT)


def test_gpus_of_a_neighbour_may_be_in_use_and_ours_may_not() -> None:
    now = reading(0, 0, 70000, 70000)
    where, lent = scope(now, 0, 1), frozenset({"GPU-2", "GPU-3"})
    assert judge([now] * 3, where, lent).open
    assert not judge([now] * 3, where).open, "without a neighbour all GPUs of the host count"
    assert not judge([reading(0, 5, 0, 0)] * 3, where, lent | {"GPU-1"}).open
