"""Whom a release ends: an ordered list of rules, of which the first that answers decides."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Callable, Optional

from .cgroup import users_service_of
from .engines import is_engine, is_kernel, is_protected, is_ray
from .holders import Holder, place_of
from .processes import Process

STOP = "stop"
"""Its unit is stopped through systemd."""
END = "end"
"""The tree of its server is ended by signals."""
KEEP = "keep"
"""It is left alone, and does not stand in the way."""
NEIGHBOUR = "neighbour"
"""A model on other GPUs: left alone, and what those GPUs report does not count."""
FOREIGN = "foreign"
"""It is left alone and stands in the way."""


@dataclass(frozen=True)
class Rules:
    """What the operator and the order say, apart from what the host shows."""

    gpus: frozenset[int]
    """Indices of the deployment's GPUs."""
    ours: frozenset[str] = frozenset()
    """The units of this program."""
    running: frozenset[str] = frozenset()
    """Those of them that are neither inactive nor failed."""
    by_hand: frozenset[str] = frozenset()
    """Units that run under a name of ours, and that somebody else wrote."""
    policy: str = "engines"
    users: frozenset[str] = frozenset({"root"})
    """Whom the units of this program run as."""
    also_end: frozenset[str] = frozenset()
    """Containers whose processes are ended too, by name or id."""
    companions: Mapping[str, str] = field(default_factory=dict)
    """Units that are stopped too, and whether they are started again."""
    login: frozenset[int] = frozenset()
    """The agent and its ancestors."""

    def all_stopped(self) -> Rules:
        """The rules once every unit that ran is known to be down: what is in it was left behind."""
        return replace(self, running=frozenset(), by_hand=frozenset())


@dataclass(frozen=True)
class Case:
    """One holder, and what the rules need to know about it."""

    holder: Holder
    family: tuple[Process, ...]
    """The process and its ancestors, nearest first."""
    reach: frozenset[int]
    """GPUs that its whole server holds."""
    unit: str
    """What its unit is to it: ``serves`` when the unit's main process is an engine, ``runs`` when
    a main process of another kind is alive and no door for people, else empty."""
    rules: Rules

    @property
    def process(self) -> Process:
        """The holder's process."""
        return self.holder.process

    @property
    def engine(self) -> bool:
        """Whether it, or a process above it, is an inference server."""
        return any(is_engine(one) for one in self.family) or is_ray(self.process)


@dataclass(frozen=True)
class Decision:
    """What happens to one holder, and why."""

    action: str
    reason: str


Rule = Callable[[Case], Optional[Decision]]


def protected(case: Case) -> Optional[Decision]:
    """The driver's programs, displays, monitors."""
    if is_protected(case.process):
        return Decision(KEEP, "it belongs to the driver, a display or a monitor")
    return None


def own_login(case: Case) -> Optional[Decision]:
    """The agent itself, and the login through which it was called."""
    if case.process.pid in case.rules.login:
        return Decision(KEEP, "it is the login of this command")
    return None


def zombie(case: Case) -> Optional[Decision]:
    """Nobody can end what is dead already."""
    if not case.process.dead:
        return None
    above = case.family[1] if len(case.family) > 1 else None
    parent = f"pid {above.pid} ({above.title})" if above else "its parent"
    return Decision(FOREIGN, f"it is a zombie: {parent} has to reap it, so end that or reboot")


def own_unit(case: Case) -> Optional[Decision]:
    """Whatever is in a unit of this program."""
    unit = case.process.unit
    if unit in case.rules.running:
        return Decision(STOP, f"{unit} is a unit of this program")
    if unit in case.rules.ours:
        return Decision(END, f"{unit} has left it behind")
    return None


def own_name(case: Case) -> Optional[Decision]:
    """A unit under a name of ours that somebody else wrote."""
    unit = case.process.unit
    if unit in case.rules.by_hand:
        return Decision(STOP, f"{unit} was written by hand, under the name of a deployment")
    return None


def companion(case: Case) -> Optional[Decision]:
    """Units that the host's settings name."""
    unit = case.process.unit
    how = case.rules.companions.get(unit)
    return Decision(STOP, f"{unit} is a companion ({how})") if how else None


def named_container(case: Case) -> Optional[Decision]:
    """Containers that the host's settings name."""
    name = case.process.container
    if name and any(name == one or _is_id_of(one, name) for one in case.rules.also_end):
        return Decision(END, f"container {name[:12]} is named in also_end")
    return None


def _is_id_of(short: str, long: str) -> bool:
    return len(short) >= 12 and long.startswith(short)


def no_memory(case: Case) -> Optional[Decision]:
    """Who only has a device open: monitors and exporters that nobody knows by name."""
    if case.holder.mib == 0 and not case.engine:
        return Decision(KEEP, "it holds no device memory")
    return None


def neighbour(case: Case) -> Optional[Decision]:
    """A model server whose processes hold none of the deployment's GPUs."""
    if case.engine and not case.reach & case.rules.gpus:
        return Decision(NEIGHBOUR, "it is a model on other GPUs")
    return None


def notebook(case: Case) -> Optional[Decision]:
    """What a live notebook kernel holds or has started, an engine too."""
    for one in case.family:
        if is_kernel(one):
            which = "it is" if one is case.process else f"it runs below pid {one.pid},"
            return Decision(FOREIGN, f"{which} a notebook's kernel: shut that kernel down")
    return None


def in_container(case: Case) -> Optional[Decision]:
    """Containers and other pid namespaces, whatever the title says."""
    if not case.process.container:
        return None
    place = place_of(case.process)
    return Decision(
        FOREIGN,
        f"it is held by a container's process, not by a unit ({place}): stop the container, "
        "or name it in also_end of this host",
    )


def mig_client(case: Case) -> Optional[Decision]:
    """Users of a slice of a partitioned GPU."""
    if case.holder.mig:
        return Decision(FOREIGN, "it uses a slice of a partitioned GPU (MIG): end it, or move it")
    return None


def no_engine(case: Case) -> Optional[Decision]:
    """Anybody else."""
    if case.engine:
        return None
    unit = case.process.unit
    service = unit.endswith(".service") and not unit.startswith("user@")
    how = f"stop {unit}, or name it in companions of this host" if service else "end it, or move it"
    return Decision(FOREIGN, f"it is no inference server: {how}")


def managed_only(case: Case) -> Optional[Decision]:
    """The host's policy `managed`."""
    if case.rules.policy != "managed":
        return None
    return Decision(
        FOREIGN, "the host's policy is `managed`, which ends units of this program only"
    )


def strange_ray(case: Case) -> Optional[Decision]:
    """An idle worker of Ray: it may have worked on anything."""
    if any(is_engine(one) for one in case.family) or case.process.user in case.rules.users:
        return None
    return Decision(FOREIGN, "it is a worker of Ray of another user: stop that Ray")


def users_service(case: Case) -> Optional[Decision]:
    """A service of a user's own manager, which may start it again whatever is done here."""
    name, user = users_service_of(case.process.cgroup), case.process.user
    if not name:
        return None
    return Decision(
        FOREIGN, f"{name} is a service of {user}'s own manager, which may start it again: "
        f"run `systemctl --user disable --now {name}` as {user}"
    )  # fmt: skip


def serving_unit(case: Case) -> Optional[Decision]:
    """A unit of somebody else that serves a model."""
    if case.unit == "serves":
        return Decision(STOP, f"{case.process.unit} serves a model")
    return None


def supervised(case: Case) -> Optional[Decision]:
    """A service of somebody else that has started it, and may start it again."""
    unit = case.process.unit
    if case.unit != "runs":
        return None
    return Decision(
        FOREIGN, f"{unit} has started it and may do so again: stop {unit}, or name it in "
        "companions of this host"
    )  # fmt: skip


def anything_left(case: Case) -> Optional[Decision]:
    """An inference server on the deployment's GPUs, wherever it was started."""
    return Decision(END, "it is an inference server on these GPUs")


RULES: tuple[Rule, ...] = (
    protected,
    own_login,
    zombie,
    own_unit,
    own_name,
    companion,
    named_container,
    no_memory,
    neighbour,
    notebook,
    in_container,
    mig_client,
    no_engine,
    managed_only,
    strange_ray,
    users_service,
    serving_unit,
    supervised,
    anything_left,
)


def decide(case: Case, rules: tuple[Rule, ...] = RULES) -> Decision:
    """What happens to one holder; what no rule knows stands in the way."""
    for rule in rules:
        decision = rule(case)
        if decision:
            return decision
    return Decision(FOREIGN, "nothing is known about it")
