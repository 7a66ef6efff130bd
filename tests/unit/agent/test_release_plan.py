"""Whom a release ends, as a table: facts in, plan out."""

from __future__ import annotations

import pytest

from cutover_agent.holders import Holder, Landscape
from cutover_agent.processes import Process
from cutover_agent.release_plan import ReleasePlan, plan_release
from tests.unit.agent.samples import NOTEBOOK, SGLANG, VLLM, holder, landscape, process, rules

OURS = frozenset({"vllm-small.service", "sglang-big.service"})
NONE: frozenset[str] = frozenset()
SSHD = process(700, "sshd: /usr/sbin/sshd -D [listener] 0 of 10-100 startups", unit="ssh.service")


def plan(seen: Landscape, running: frozenset[str] = NONE, policy: str = "engines") -> ReleasePlan:
    return plan_release(seen, rules(ours=OURS, running=running, policy=policy))


def ended(got: ReleasePlan) -> dict[int, set[int]]:
    return {tree.root.pid: {member.pid for member in tree.members} for tree in got.end}


def reasons(got: ReleasePlan) -> dict[int, str]:
    return {foreign.holder.process.pid: foreign.reason for foreign in got.foreign}


def server(unit: str, parent: int = 1, pid: int = 100) -> tuple[Process, Process, Process]:
    """A vLLM server with an engine core and one worker that holds the GPU."""
    return (
        process(pid, *VLLM, parent=parent, unit=unit),
        process(pid + 1, "VLLM::EngineCore", parent=pid, unit=unit),
        process(pid + 2, "VLLM::Worker_TP0", parent=pid + 1, unit=unit),
    )


def test_our_running_unit_is_stopped_by_systemd_and_not_signalled() -> None:
    main, core, worker = server("vllm-small.service")
    seen = landscape(holder(worker), others=(main, core))
    got = plan(seen, frozenset({"vllm-small.service"}))
    assert (got.stop, got.end, got.foreign) == (("vllm-small.service",), (), ())


def test_a_unit_of_ours_is_stopped_though_it_holds_nothing_between_two_crashes() -> None:
    got = plan(landscape(), frozenset({"vllm-small.service"}))
    assert got.stop == ("vllm-small.service",)


def test_leftovers_in_a_unit_of_ours_that_is_down_are_ended_whatever_their_name() -> None:
    left = process(102, "python3", "-c", "spawn", unit="vllm-small.service")
    assert ended(plan(landscape(holder(left)))) == {102: {102}}


def test_what_is_in_a_unit_that_ran_and_was_stopped_is_ended() -> None:
    units = frozenset({"vllm-small.service"})
    before = rules(ours=OURS, running=units, by_hand=frozenset({"theirs.service"}))
    left = process(102, "python3", "-c", "spawn", unit="vllm-small.service")
    seen = landscape(holder(left))
    assert plan_release(seen, before).stop and not plan_release(seen, before).end
    after = plan_release(seen, before.all_stopped())
    assert (ended(after), after.units) == ({102: {102}}, ())


@pytest.mark.parametrize(
    "unit", ["ssh.service", "session-3.scope", "user@1000.service", "cron.service"]
)
def test_a_server_started_by_hand_is_ended_with_its_whole_tree(unit: str) -> None:
    main, core, worker = server(unit)
    tracker = process(103, "python3", "-c", "resource_tracker", parent=100, unit=unit)
    seen = landscape(
        holder(worker), others=(SSHD, main, core, tracker), main_pids={"ssh.service": 700}
    )
    got = plan(seen)
    assert ended(got) == {100: {100, 101, 102, 103}}
    assert (got.stop, got.foreign) == ((), ())


def test_a_server_below_a_live_shell_is_ended_and_the_shell_is_not() -> None:
    shell = process(90, "-bash", parent=700, unit="session-3.scope")
    main, core, worker = server("session-3.scope", parent=90)
    assert set(ended(plan(landscape(holder(worker), others=(shell, main, core))))) == {100}


def test_several_workers_of_one_server_are_one_tree() -> None:
    main, core, worker = server("session-3.scope")
    second = process(104, "VLLM::Worker_TP1", parent=101, unit="session-3.scope")
    got = plan(landscape(holder(worker), holder(second), others=(main, core)))
    assert ended(got) == {100: {100, 101, 102, 104}}


def test_orphaned_workers_are_each_ended() -> None:
    first = process(102, "VLLM::Worker_TP0", unit="session-3.scope")
    second = process(103, "sglang::scheduler_TP1", unit="session-9.scope")
    assert ended(plan(landscape(holder(first), holder(second)))) == {102: {102}, 103: {103}}


def test_a_notebook_that_is_the_engines_parent_stays_and_so_does_the_engine() -> None:
    notebook = process(50, *NOTEBOOK, unit="session-3.scope")
    main, core, worker = server("session-3.scope", parent=50)
    got = plan(landscape(holder(worker), holder(notebook, 1024), others=(main, core)))
    assert ended(got) == {}, "an engine below a live notebook is the notebook's"
    assert "it is a notebook's kernel" in reasons(got)[50]
    assert "it runs below pid 50, a notebook's kernel" in reasons(got)[102]


@pytest.mark.parametrize(("mib", "stands"), [(1024, True), (None, True), (0, False)])
def test_what_is_no_engine_stands_in_the_way_unless_it_holds_nothing(
    mib: int | None, stands: bool
) -> None:
    got = plan(landscape(holder(process(50, "python3", "train.py"), mib)))
    assert bool(got.foreign) is stands
    assert got.end == ()


@pytest.mark.parametrize("mib", [0, 27, None])
def test_driver_and_monitors_are_never_ended(mib: int | None) -> None:
    names = ("nvidia-cuda-mps-server", "nvidia-persistenced", "nvtop", "dcgm-exporter")
    holders = [holder(process(400 + n, name), mib) for n, name in enumerate(names)]
    got = plan(landscape(*holders))
    assert (got.stop, got.end, got.foreign) == ((), (), ())


@pytest.mark.parametrize("argv", [VLLM, SGLANG])
def test_a_service_of_somebody_else_that_serves_is_stopped_through_systemd(
    argv: tuple[str, ...],
) -> None:
    main = process(100, *argv, unit="theirs.service")
    worker = process(101, "VLLM::Worker_TP0", parent=100, unit="theirs.service")
    got = plan(landscape(holder(worker), others=(main,), main_pids={"theirs.service": 100}))
    assert (got.stop, got.aside, got.end) == ((), ("theirs.service",), ())


@pytest.mark.parametrize(
    "wrapper",
    [
        ("/bin/bash", "/root/run_glm5.sh"),
        ("/usr/bin/python3", "/usr/bin/conda", "run", "-n", "vllm", "vllm", "serve"),
        ("/usr/bin/tini", "--", "vllm", "serve"),
    ],
    ids=["script", "conda", "tini"],
)
def test_a_service_of_somebody_else_is_stopped_whole_also_behind_a_wrapper(
    wrapper: tuple[str, ...],
) -> None:
    """Ended behind systemd's back it would come again, by its Restart=."""
    shell = process(99, *wrapper, unit="theirs.service")
    main, core, worker = server("theirs.service", parent=99)
    seen = landscape(holder(worker), others=(shell, main, core), main_pids={"theirs.service": 99})
    got = plan(seen)
    assert got.end == ()
    assert got.aside == ("theirs.service",)


def test_a_service_that_does_more_than_serve_is_refused() -> None:
    shell = process(99, "/usr/bin/supervisord", "-n", unit="theirs.service")
    main, core, worker = server("theirs.service", parent=99)
    got = plan(
        landscape(holder(worker), others=(shell, main, core), main_pids={"theirs.service": 99})
    )
    assert (got.end, got.aside) == ((), ())
    assert "theirs.service has started it and may do so again" in reasons(got)[102]


def test_a_container_is_refused() -> None:
    worker = process(102, "VLLM::Worker_TP0", unit="docker-4711.scope")
    got = plan(landscape(holder(worker)))
    assert ended(got) == {}
    assert "held by a container's process, not by a unit (container 4711)" in reasons(got)[102]


def test_policy_managed_ends_units_of_ours_only() -> None:
    main, core, worker = server("session-3.scope")
    left = process(202, "VLLM::Worker_TP0", unit="vllm-small.service")
    seen = landscape(holder(worker), holder(left), others=(main, core))
    got = plan(seen, policy="managed")
    assert set(ended(got)) == {202}
    assert "managed" in reasons(got)[102]


@pytest.mark.parametrize("argv", [("",), (" ",), ("", "-x"), ()])
@pytest.mark.parametrize("parented", [False, True])
def test_an_empty_title_of_a_holder_or_its_parent_is_no_crash(
    argv: tuple[str, ...], parented: bool
) -> None:
    odd = process(60, *argv)
    child = process(61, *NOTEBOOK, parent=60)
    seen = landscape(holder(child), others=(odd,)) if parented else landscape(holder(odd))
    assert len(plan(seen).foreign) == 1


def test_the_summary_names_what_will_be_ended() -> None:
    main, core, worker = server("session-3.scope")
    seen = landscape(holder(worker), others=(main, core))
    lines = plan(seen, frozenset({"sglang-big.service"})).summary()
    assert lines == ["stops sglang-big.service", f"ends pid 100 ({' '.join(VLLM)})"]


def test_a_holder_is_described_by_what_is_needed_to_find_it() -> None:
    text = holder(process(50, *NOTEBOOK, user="anna", unit="session-3.scope"), None).describe()
    for part in ("pid 50", "ipykernel_launcher", "anna", "session-3.scope", "GPU 0", "unknown"):
        assert part in text
    assert "GPU ?" in Holder(process(50), frozenset(), 1).describe()
