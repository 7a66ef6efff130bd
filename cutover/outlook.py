"""Plain words for a preview: what is true on a host, and what the switch will do to it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from cutover.facts import Facts, shortened
from cutover_agent.moments import DOWN
from cutover_agent.order import Order

TIMES = "\N{MULTIPLICATION SIGN}"
MOST_NAMED = 4
RESTART_SECONDS = 20
"""What a switch takes besides the load, where the host has not measured one yet."""


def sentences(facts: Facts, order: Order) -> list[str]:
    """What an operator should know before `up`, the most important first; no line breaks."""
    value = facts.value
    lines = [_headline(value, order), *filter(None, [value.get("again")])]
    lines += [f"`stage` would refuse: {reason}" for reason in value.get("refusals", ())]
    lines += _by_hand(value.get("by_hand"), order)
    if will_switch(value, order):
        ours = f"stops {serves['unit']}" if (serves := value.get("serves")) else ""
        lines += [f"the cutover {act}" for act in value.get("ends", ()) if act != ours]
        lines += value.get("warnings", ())
    foreign = [holder for holder in value["holders"] if not holder["ours"]]
    if foreign:
        lines.append(f"GPUs are also held by {_listed([_holder(each) for each in foreign])}")
    if value["gpus"]["problem"]:
        lines.append(f"the GPUs cannot be read: {value['gpus']['problem']}")
    if value["persistence"] == "off":
        lines.append(
            "persistence mode is off: every look at the GPUs is slow; "
            "run `nvidia-smi -pm 1` on the host"
        )
    return shortened(lines)


def _by_hand(found: Mapping[str, Any] | None, order: Order) -> list[str]:
    if not found:
        return []
    if found["differences"]:
        differing = "; ".join(found["differences"])
        return [f"{order.unit} was written by hand and differs, so it is restarted: {differing}"]
    pending = ", ".join(found["pending"])
    said = f"{order.unit} was written by hand and runs the same: it is taken over as it runs"
    return [f"{said}; pending until its next start: {pending}" if pending else said]


def will_switch(value: Mapping[str, Any], order: Order) -> bool:
    """Whether an `up` stops what serves, as far as the facts tell."""
    serves, by_hand = value.get("serves"), value.get("by_hand")
    if not serves:
        return not by_hand or bool(by_hand["differences"])
    other = serves["unit_digest"] != order.unit_digest or bool(value.get("again"))
    return other or not (serves["healthy"] or serves["loading"])


def _headline(value: Mapping[str, Any], order: Order) -> str:
    if value.get("busy"):
        return f"a cutover to {value['busy']} is under way: wait for its end"
    serves = value.get("serves")
    if not will_switch(value, order):
        used = value["gpus"]["used_mib"]
        return _serving(serves, used) if serves else f"{order.unit} serves {order.deployment}"
    now = _serving(serves, value["gpus"]["used_mib"]) if serves else "nothing of ours serves"
    return f"{now} -> {order.deployment}; {_cost(order, value, serves)}"


def _serving(serves: Mapping[str, Any], used: Sequence[int]) -> str:
    name = serves["deployment"]
    if serves["seconds"] is None:
        return f"{name} is committed, but {serves['unit']} is {serves['state']}"
    about = [duration(serves["seconds"])]
    if used and any(used):
        gib = sum(used) / len(used) / 1024
        about.append(f"{len(used)} {TIMES} {gib:.1f} GiB")
    if serves["loading"]:
        return f"{name} loads ({', '.join(about)})"
    health = "serves" if serves["healthy"] else "runs but does not answer"
    return f"{name} {health} ({', '.join(about)})"


def _cost(order: Order, value: Mapping[str, Any], serves: Mapping[str, Any] | None) -> str:
    runs = serves and serves["seconds"] is not None
    stops = "nothing serves for" if runs or value.get("ends") else "ready in"
    longest = f"at most {duration(value['bound'])} if it fails"
    back = value.get("way_back") or "there is no way back"
    if serves and runs:
        back = f"back to {serves['deployment']} on failure"
    return f"{stops} {_usual(order, value)}, {longest}; {back}"


def _usual(order: Order, value: Mapping[str, Any]) -> str:
    """How long nothing serves, from what the host measured last, or at least the load's limit."""
    load = value.get("loads", {}).get(order.deployment)
    if load is None:
        return f"a time not measured yet (load at most {duration(order.deadlines.load)})"
    parts = value.get("phases", {}).get(order.deployment, {})
    told, down = f"load {duration(load)}", load + RESTART_SECONDS
    if parts:
        down = sum(parts.get(part, 0.0) for part in DOWN)
        if parts.get("weights"):
            told += f", of it {duration(parts['weights'])} for the weights"
    return f"about {duration(down)} ({told} last time)"


def _holder(holder: Mapping[str, Any]) -> str:
    memory = "" if holder["mib"] is None else f", {holder['mib']} MiB"
    gpus = ",".join(str(index) for index in holder["gpus"])
    return f"pid {holder['pid']} ({holder['title']}; {holder['user']}; GPU {gpus}{memory})"


def _listed(names: Sequence[str]) -> str:
    more = len(names) - MOST_NAMED
    shown = ", ".join(names[:MOST_NAMED])
    return f"{shown} and {more} more" if more > 0 else shown


def duration(seconds: float) -> str:
    """Seconds for people, two units at most: `45 s`, `2 min 41 s`, `3 h 5 min`, `3 d`."""
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return _two(whole, 60, "min", 1, "s")
    if whole < 86400:
        return _two(whole, 3600, "h", 60, "min")
    return f"{whole // 86400} d"


def _two(seconds: int, large: int, its_name: str, small: int, other_name: str) -> str:
    rest = seconds % large // small
    return f"{seconds // large} {its_name}" + (f" {rest} {other_name}" if rest else "")
