"""Whole hosts put together at random from labelled pieces: the label says what must happen."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import count
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cutover_agent.holders import Holder, Landscape, Service
from cutover_agent.policy import Rules
from cutover_agent.processes import Process
from cutover_agent.release_plan import plan_release
from tests.unit.agent import recorded
from tests.unit.agent.samples import reading

OURS = ("vllm-glm5.service", "sglang-kimi.service")
USERS = ("root", "anna")


@dataclass
class World:
    """A host in the making, and what its labels ask for."""

    draw: Any
    gpus: frozenset[int]
    """The deployment's."""
    policy: str
    processes: dict[int, Process] = field(default_factory=dict)
    holders: list[Holder] = field(default_factory=list)
    services: dict[str, Service] = field(default_factory=dict)
    running: set[str] = field(default_factory=set)
    must_end: set[int] = field(default_factory=set)
    must_stop: set[str] = field(default_factory=set)
    pids: Any = field(default_factory=lambda: count(100))

    def add(
        self, argv: tuple[str, ...], parent: int = 1, cgroup: str = "/", **more: Any
    ) -> Process:
        pid = next(self.pids)
        name = argv[0].rpartition("/")[2][:15]
        user = self.draw(st.sampled_from(USERS))
        one = Process(pid, pid, parent, "S", name, argv, user, cgroup, **more)
        self.processes[pid] = one
        return one

    def hold(self, one: Process, gpus: frozenset[int], unknown: bool = True) -> None:
        mib = self.draw(st.sampled_from([70000, None] if unknown else [0]))
        self.holders.append(Holder(one, gpus, mib, dict.fromkeys(gpus, mib) if mib else {}))

    def ours(self) -> frozenset[int]:
        some = st.sets(st.sampled_from(sorted(self.gpus)), min_size=1)
        return frozenset(self.draw(some))

    def others(self) -> frozenset[int]:
        rest = sorted(set(range(8)) - self.gpus)
        return frozenset(self.draw(st.sets(st.sampled_from(rest), min_size=1)))

    def one_of(self, choices: tuple[Any, ...]) -> Any:
        return self.draw(st.sampled_from(choices))

    def server(self, parent: int, cgroup: str, gpus: frozenset[int], **more: Any) -> list[Process]:
        main = self.add(self.one_of(recorded.SERVERS), parent, cgroup, **more)
        core = self.add((self.one_of(recorded.CORES),), main.pid, cgroup, **more)
        helper = self.add(("/usr/bin/python3", "-c", "resource_tracker"), main.pid, cgroup, **more)
        worker = self.add((self.one_of(recorded.WORKERS),), core.pid, cgroup, **more)
        self.hold(worker, gpus)
        return [main, core, helper, worker]


def by_hand(world: World) -> None:
    """A server behind ssh, cron, a terminal of jupyter or tmux: ended whole; the door stays."""
    unit, argv = world.one_of(recorded.DOORS)
    cgroup = f"/system.slice/{unit}"
    door = world.add(argv, 1, cgroup)
    world.services[unit] = Service(unit, door.pid, "active", "enabled", "always")
    shell = world.add(("-bash",), door.pid, cgroup)
    parent = world.one_of((1, door.pid, shell.pid))
    end(world, world.server(parent, cgroup, world.ours()))


def in_a_session(world: World) -> None:
    end(world, world.server(1, "/user.slice/user-0.slice/session-3.scope", world.ours()))


def orphan(world: World) -> None:
    cgroup = world.one_of(("/", "/user.slice/user-0.slice/session-9.scope", "/init.scope"))
    worker = world.add((world.one_of(recorded.WORKERS),), 1, cgroup)
    world.hold(worker, world.ours())
    end(world, [worker])


def written_unit(world: World) -> None:
    """A unit that somebody wrote: stopped through systemd, not by a signal."""
    unit = f"handmade-{next(world.pids)}.service"
    main, *_ = world.server(1, f"/system.slice/{unit}", world.ours())
    world.services[unit] = Service(unit, main.pid, "active", "enabled", "always")
    if world.policy == "engines":
        world.must_stop.add(unit)


def our_unit(world: World) -> None:
    unit = world.one_of(OURS)
    if unit not in world.services:
        main, *_ = world.server(1, f"/system.slice/{unit}", world.ours())
        world.services[unit] = Service(unit, main.pid, "active", "enabled", "on-failure")
        world.running.add(unit)
        world.must_stop.add(unit)


def our_leftover(world: World) -> None:
    unit = "vllm-gone.service"
    left = world.add(world.one_of(recorded.STRANGERS), 1, f"/system.slice/{unit}")
    world.hold(left, world.ours())
    world.must_end.add(left.pid)


def neighbour(world: World) -> None:
    unit = f"neighbour-{next(world.pids)}.service"
    main, *_ = world.server(1, f"/system.slice/{unit}", world.others())
    world.services[unit] = Service(unit, main.pid, "active", "enabled", "always")


def neighbour_by_hand(world: World) -> None:
    world.server(1, "/user.slice/user-0.slice/session-4.scope", world.others())


def container(world: World) -> None:
    world.server(1, world.one_of(recorded.CONTAINERS), world.ours())


def other_namespace(world: World) -> None:
    world.server(1, "/", world.ours(), elsewhere=True)


def notebook(world: World) -> None:
    cgroup = "/system.slice/jupyter.service"
    kernel = world.add(world.one_of(recorded.KERNELS), 1, cgroup)
    world.hold(kernel, world.ours())
    world.server(kernel.pid, cgroup, world.ours())


def stranger(world: World) -> None:
    unit = world.one_of(("session-5.scope", "batch.service"))
    world.hold(world.add(world.one_of(recorded.STRANGERS), 1, f"/x.slice/{unit}"), world.ours())


def protected(world: World) -> None:
    world.hold(world.add(world.one_of(recorded.PROTECTED)), frozenset(range(8)))


def unknown_monitor(world: World) -> None:
    one = world.add(("/opt/watch/bin/agentd",))
    world.hold(one, frozenset(range(8)), unknown=False)


def look_alike(world: World) -> None:
    world.add(world.one_of(recorded.LOOK_ALIKES))


def end(world: World, members: list[Process]) -> None:
    if world.policy == "engines":
        world.must_end |= {one.pid for one in members}


PIECES = (
    by_hand, in_a_session, orphan, written_unit, our_unit, our_leftover, neighbour,
    neighbour_by_hand, container, other_namespace, notebook, stranger, protected,
    unknown_monitor, look_alike,
)  # fmt: skip


@st.composite
def worlds(draw: Any) -> World:
    gpus = frozenset(draw(st.sampled_from([range(4), range(2, 7), (0,)])))
    world = World(draw, gpus, draw(st.sampled_from(["engines", "engines", "managed"])))
    for piece in draw(st.lists(st.sampled_from(PIECES), min_size=1, max_size=9)):
        piece(world)
    return world


@settings(
    max_examples=250,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
@given(worlds())
def test_all_that_should_end_ends_and_nobody_else_is_touched(world: World) -> None:
    seen = Landscape(world.processes, tuple(world.holders), reading(*[70000] * 8), world.services)
    rules = Rules(
        gpus=world.gpus,
        ours=frozenset({*OURS, "vllm-gone.service"}),
        running=frozenset(world.running),
        policy=world.policy,
    )
    plan = plan_release(seen, rules)
    assert plan.signalled == world.must_end
    assert set(plan.units) == world.must_stop
