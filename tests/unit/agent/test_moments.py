"""How long the parts of a cutover took: disjoint, in order, and together the time of nothing."""

from __future__ import annotations

from cutover_agent.moments import DOWN, Moments, describe, refine

RAW = {"drain": 2.0, "release": 5.0, "gate": 0.3, "install": 0.1, "start": 0.4, "ready": 9.0}
AT = Moments(began=100, stop=101, gone=104, released=105, installed=105.4, executed=105.6,
             ready=115.6)  # fmt: skip


def test_a_release_is_told_apart_into_what_is_prepared_the_stop_and_the_rest() -> None:
    told = refine(RAW, AT, {})
    assert (told["prepare"], told["stop"], told["release"]) == (1.0, 3.0, 1.0)


def test_a_load_is_told_apart_by_the_engines_log_and_the_rest_is_ready() -> None:
    told = refine(RAW, AT, {"weights": 6.5, "compile": 1.5})
    assert (told["start"], told["weights"], told["compile"], told["ready"]) == (0.2, 6.5, 1.5, 2.0)


def test_the_parts_of_the_time_in_which_nothing_serves_add_up_to_it() -> None:
    told = refine(RAW, AT, {"weights": 6.5, "capture": 1.0})
    whole = sum(told.get(part, 0.0) for part in DOWN)
    assert round(whole, 3) == round(AT.ready - AT.stop, 3)


def test_from_the_last_death_to_the_next_start_is_the_gap_where_both_were_seen() -> None:
    assert round(AT.gap, 3) == 1.6
    assert Moments(executed=5).gap == 0.0
    assert Moments(gone=5).gap == 0.0


def test_where_nothing_had_to_be_stopped_the_stop_takes_no_time() -> None:
    told = refine(RAW, Moments(began=1, stop=2, released=3), {})
    assert (told["stop"], told["release"]) == (0.0, 1.0)


def test_a_transaction_that_another_agent_finished_keeps_what_was_measured() -> None:
    assert refine({"ready": 4.0}, Moments(), {"weights": 3.0}) == {"ready": 1.0, "weights": 3.0}


def test_a_log_that_tells_more_than_the_whole_load_leaves_nothing_and_no_less() -> None:
    assert refine(RAW, AT, {"weights": 60.0})["ready"] == 0.0


def test_the_line_for_people_keeps_the_order_of_things() -> None:
    assert describe({"smoke": 0.04, "weights": 6.5, "stop": 3.0, "commit": 9.0}) == (
        "stop 3.0 s, weights 6.5 s, smoke 0.0 s"
    )
