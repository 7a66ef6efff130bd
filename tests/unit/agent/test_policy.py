"""Whom a release ends: facts in, plan out. Ids are those of the field cases."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest

from cutover_agent.holders import Holder, Landscape, Service
from cutover_agent.policy import RULES, Rule
from cutover_agent.processes import Process
from cutover_agent.release_plan import ReleasePlan, plan_release
from tests.unit.agent.samples import NOTEBOOK, VLLM, holder, landscape, process, reading, rules

OURS = "vllm-small.service"
MANAGED = rules(ours=frozenset({OURS}), policy="managed")
ENGINES = rules(ours=frozenset({OURS}))
RUNNING = rules(ours=frozenset({OURS}), running=frozenset({OURS}))
FIRST_FOUR = rules(ours=frozenset({OURS}), gpus=frozenset(range(4)))
SSHD = process(700, "sshd: /usr/sbin/sshd -D [listener] 0 of 10-100 startups", unit="ssh.service")
SSH = Service("ssh.service", 700, "active")
USERS = "/user.slice/user-0.slice/user@0.service"
DOCKER = "docker-4711471147114711.scope"


@dataclass(frozen=True)
class Row:
    """One situation, and what a user would expect of a release in it."""

    name: str
    seen: Landscape
    given: Any = ENGINES
    ends: frozenset[int] = frozenset()
    """Every process that is signalled."""
    stops: tuple[str, ...] = ()
    """Every unit that is stopped."""
    refuses: dict[int, str] = field(default_factory=dict)
    """Holders that stand in the way, and words of the reason."""

    def __str__(self) -> str:
        return self.name


def server(unit: str = "", parent: int = 1, pid: int = 100, gpu: int = 0) -> tuple[Process, ...]:
    """A vLLM server: API process, engine core, a worker."""
    return (
        process(pid, *VLLM, parent=parent, unit=unit),
        process(pid + 1, "VLLM::EngineCore", parent=pid, unit=unit),
        process(pid + 2, "VLLM::Worker_TP0", parent=pid + 1, unit=unit),
    )


def scene(*holders: Holder, others: tuple[Process, ...] = (), **more: Any) -> Landscape:
    return landscape(*holders, others=(SSHD, *others), **{"services": (SSH,), **more})


def orphan(title: str, pid: int = 50, **changes: Any) -> Process:
    return process(pid, title, **changes)


def tree(*members: Process, **more: Any) -> Landscape:
    """A server whose last process holds GPU 0."""
    return scene(holder(members[-1]), others=members[:-1], **more)


def theirs(restart: str = "always", pid: int = 100) -> Service:
    return Service("theirs.service", pid, "active", "enabled", restart)


ZOMBIE = process(31001, name="VLLM::EngineCor", state="Z")
HELPER = process(31002, "VLLM::Worker_TP1", parent=1)
CACHE = process(60, "/opt/lmcache/bin/python3", "-m", "lmcache.server", unit="lmcache.service")
LMCACHE = Service("lmcache.service", 60, "active", "enabled")
MPS = process(412, "nvidia-cuda-mps-server", name="nvidia-cuda-mps")
SHELL = process(90, "-bash", parent=700, unit="session-3.scope")
LAB = process(80, "/opt/jupyter/bin/python3", "-m", "jupyterlab", unit="jupyter.service")
KERNEL = process(85, *NOTEBOOK, parent=80, unit="jupyter.service")

ROWS = [
    Row(
        "F01 a unit that somebody wrote under a name of ours is stopped whatever the policy",
        tree(*server(OURS), services=(Service(OURS, 100, "active", "enabled"),)),
        rules(by_hand=frozenset({OURS}), policy="managed"),
        stops=(OURS,),
    ),
    Row(
        "F01 such a unit is stopped while it holds no memory yet: its file is to be replaced",
        scene(),
        rules(by_hand=frozenset({OURS})),
        stops=(OURS,),
    ),
    Row(
        "F01 orphans of a killed server are found by what they hold, not by the unit or the port",
        scene(
            holder(orphan("VLLM::Worker_TP0", 51, parent=40, unit="session-3.scope")),
            holder(orphan("VLLM::Worker_TP1", 52, parent=40, unit="session-3.scope")),
            others=(process(40, "/usr/bin/launcher.sh", unit="session-3.scope"),),
        ),
        ends=frozenset({51, 52}),
    ),
    Row(
        "F02 a scheduler that has left its tree and its unit is known by its title",
        scene(holder(orphan("sglang::scheduler_DP0_TP0_EP0", unit="run-77.scope"))),
        ends=frozenset({50}),
    ),
    Row(
        "F02 where only our units may be ended it is reported",
        scene(holder(orphan("sglang::scheduler_DP0_TP0_EP0", unit="run-77.scope"))),
        MANAGED,
        refuses={50: "managed"},
    ),
    Row(
        "F03 a container's worker is named and not ended",
        scene(holder(orphan("VLLM::Worker", 4711, unit=DOCKER), 22000)),
        refuses={4711: "held by a container's process, not by a unit"},
    ),
    Row(
        "F03 a container that is named in also_end is ended",
        scene(holder(orphan("VLLM::Worker", 4711, unit=DOCKER), 22000)),
        rules(also_end=frozenset({"471147114711"})),
        ends=frozenset({4711}),
    ),
    Row(
        "F04 a cache daemon is reported with its unit",
        scene(holder(CACHE, 440000, 0, 1, 2, 3), services=(SSH, LMCACHE)),
        refuses={60: "stop lmcache.service, or name it in companions"},
    ),
    Row(
        "F04 a companion is stopped through systemd",
        scene(holder(CACHE, 440000, 0, 1, 2, 3), services=(SSH, LMCACHE)),
        rules(companions={"lmcache.service": "restart"}),
        stops=("lmcache.service",),
    ),
    Row(
        "F05 an idle worker of Ray is ended when it is of the units' user",
        scene(holder(orphan("ray::IDLE"))),
        ends=frozenset({50}),
    ),
    Row(
        "F05 an idle worker of Ray of another user is reported",
        scene(holder(orphan("ray::IDLE", user="anna"))),
        refuses={50: "another user"},
    ),
    Row(
        "a worker of vLLM under Ray is an engine whoever started it",
        scene(holder(orphan("ray::RayWorkerWrapper.execute_method", user="anna"))),
        ends=frozenset({50}),
    ),
    Row(
        "F06 a zombie is no obstacle while a living process holds its GPU, which is ended",
        scene(holder(ZOMBIE, 5371), holder(HELPER, None)),
        ends=frozenset({31002}),
    ),
    Row(
        "F06 a zombie alone is reported with who has to reap it",
        scene(holder(ZOMBIE, 5371), others=(process(1, "/usr/bin/tini"),)),
        refuses={31001: "pid 1 (/usr/bin/tini) has to reap it"},
    ),
    Row(
        "F20 a stranger on one card of eight is named",
        scene(holder(process(50, "python3", "train.py", unit="session-9.scope"), 9216)),
        refuses={50: "it is no inference server"},
    ),
    Row("F23 the MPS server is never signalled", scene(holder(MPS, 27))),
    Row(
        "F65 a unit of ours between two crashes holds nothing and is stopped all the same",
        scene(seen=reading(0)),
        RUNNING,
        stops=(OURS,),
    ),
    Row(
        "a unit of ours is stopped through systemd and gets no signal",
        tree(*server(OURS)),
        RUNNING,
        stops=(OURS,),
    ),
    Row(
        "what a stopped unit of ours has left behind is ended whatever it looks like",
        scene(holder(process(50, "python3", "-c", "spawn_main", unit=OURS))),
        MANAGED,
        ends=frozenset({50}),
    ),
    Row("nohup below ssh", tree(*server("ssh.service", 700)), ends=frozenset({100, 101, 102})),
    Row(
        "nohup below a session whose shell lives",
        tree(SHELL, *server("session-3.scope", 90)),
        ends=frozenset({100, 101, 102}),
    ),
    Row(
        "in a terminal of jupyter, which stays",
        tree(
            LAB,
            *server("jupyter.service", 80),
            services=(Service("jupyter.service", 80, "active"),),
        ),
        ends=frozenset({100, 101, 102}),
    ),
    Row(
        "started by cron, which stays",
        tree(
            process(71, "/usr/sbin/cron", "-f", unit="cron.service"),
            *server("cron.service", 71),
            services=(Service("cron.service", 71, "active"),),
        ),
        ends=frozenset({100, 101, 102}),
    ),
    Row(
        "a unit that somebody wrote by hand is stopped through systemd",
        tree(*server("theirs.service"), services=(theirs(),)),
        stops=("theirs.service",),
    ),
    Row(
        "a unit that starts its server by a shell is stopped through systemd too",
        tree(
            process(99, "/bin/bash", "/root/run.sh", unit="theirs.service"),
            *server("theirs.service", 99),
            services=(theirs(pid=99),),
        ),
        stops=("theirs.service",),
    ),
    Row(
        "a unit that does more than serve is reported",
        tree(
            process(99, "/usr/bin/supervisord", unit="theirs.service"),
            *server("theirs.service", 99),
            services=(theirs(pid=99),),
        ),
        refuses={102: "theirs.service has started it and may do so again"},
    ),
    Row(
        "a notebook's kernel that holds a GPU",
        scene(holder(KERNEL, 1024), others=(LAB,)),
        refuses={85: "it is a notebook's kernel"},
    ),
    Row(
        "an engine below a live kernel belongs to the notebook",
        scene(
            holder(process(102, "VLLM::EngineCore", parent=85, unit="jupyter.service")),
            others=(LAB, KERNEL),
        ),
        refuses={102: "it runs below pid 85, a notebook's kernel"},
    ),
    Row(
        "another pid namespace outranks the title",
        scene(holder(orphan("VLLM::EngineCore", elsewhere=True))),
        refuses={50: "another pid namespace"},
    ),
    Row(
        "a monitor that nobody knows, and that holds nothing, is left alone",
        scene(holder(process(50, "python3", "watch.py"), 0)),
    ),
    Row(
        "who may hold memory stands in the way",
        scene(holder(process(50, "python3", "watch.py"), None)),
        refuses={50: "it is no inference server"},
    ),
    Row(
        "a client of a partitioned GPU is reported",
        scene(Holder(orphan("VLLM::EngineCore"), frozenset({0}), 5000, {0: 5000}, mig=True)),
        refuses={50: "MIG"},
    ),
    Row(
        "a model on other GPUs keeps serving",
        scene(holder(server(pid=200)[-1], 70000, 6, 7), others=server(pid=200)[:-1]),
        FIRST_FOUR,
    ),
    Row(
        "a stranger on other GPUs stands in the way of the host's gate",
        scene(holder(process(50, "python3", "train.py"), 1024, 6)),
        FIRST_FOUR,
        refuses={50: "it is no inference server"},
    ),
    Row(
        "a server that reaches into our GPUs is ended whole",
        scene(
            holder(process(102, "VLLM::Worker_TP0", parent=101), 70000, 3),
            holder(process(103, "VLLM::Worker_TP1", parent=101), 70000, 4),
            others=server()[:2],
        ),
        FIRST_FOUR,
        ends=frozenset({100, 101, 102, 103}),
    ),
    Row(
        "this login is never signalled",
        scene(holder(process(50, "vllm", "serve", "m"))),
        rules(login=frozenset({50})),
    ),
    Row(
        "a monitor below a server is spared when the server ends",
        scene(
            holder(server()[-1]),
            others=(*server()[:-1], process(103, "nvidia-smi", "dmon", parent=100)),
        ),
        ends=frozenset({100, 101, 102}),
    ),
    Row(
        "F132: a service of a user's own manager is that manager's to stop",
        scene(holder(orphan("VLLM::EngineCore", cgroup=f"{USERS}/app.slice/vllm.service"))),
        refuses={50: "run `systemctl --user disable --now vllm.service` as root"},
    ),
    Row(
        "what a user started in a terminal is ended",
        scene(holder(orphan("VLLM::EngineCore", cgroup=f"{USERS}/app.slice/vte-1.scope"))),
        ends=frozenset({50}),
    ),
    Row(
        "a kernel that is dead speaks for nobody",
        scene(
            holder(process(102, "VLLM::EngineCore", parent=85)),
            others=(process(85, *NOTEBOOK, state="Z"),),
        ),
        ends=frozenset({102}),
    ),
]


def outcome(plan: ReleasePlan) -> tuple[frozenset[int], tuple[str, ...], dict[int, str]]:
    refused = {one.holder.process.pid: one.reason for one in plan.foreign}
    return plan.signalled, plan.units, refused


def is_right(row: Row, order_of_rules: tuple[Rule, ...] = RULES) -> bool:
    ends, stops, refused = outcome(plan_release(row.seen, row.given, order_of_rules))
    told = refused.keys() == row.refuses.keys() and all(
        words in refused[pid] for pid, words in row.refuses.items()
    )
    return (ends, stops) == (row.ends, row.stops) and told


@pytest.mark.parametrize("row", ROWS, ids=str)
def test_a_release_does_what_a_user_would_expect(row: Row) -> None:
    ends, stops, refused = outcome(plan_release(row.seen, row.given))
    assert (ends, stops) == (row.ends, row.stops), refused
    assert refused.keys() == row.refuses.keys()
    for pid, words in row.refuses.items():
        assert words in refused[pid]


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
def test_no_rule_can_be_taken_away_without_a_row_that_notices(rule: Callable[..., Any]) -> None:
    without = tuple(one for one in RULES if one is not rule)
    assert all(is_right(row) for row in ROWS)
    assert not all(is_right(row, without) for row in ROWS)
