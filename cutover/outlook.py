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
    lines = [_headline(value, order)]
    lines += [f"`stage` would refuse: {reason}" for reason in value.get("refusals", ())]
    lines += _by_hand(value.get("by_hand"), order)
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
    serves = value.get("serves")
    return not serves or serves["unit_digest"] != order.unit_digest or not serves["healthy"]


def _headline(value: Mapping[str, Any], order: Order) -> str:
    serves = value.get("serves")
    by_hand = value.get("by_hand")
    if not serves and by_hand and not by_hand["differences"]:
        return f"{order.unit} serves {order.deployment}"
    if value.get("busy"):
        return f"a cutover to {value['busy']} is under way: wait for its end"
    now = _serving(serves, value["gpus"]["used_mib"]) if serves else "nothing of ours serves"
    if serves and not will_switch(value, order):
        return now
    back = value.get("way_back") or "there is no way back"
    return f"{now} -> {order.deployment}; {_cost(order, value, serves, back)}"


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


def _cost(
    order: Order, value: Mapping[str, Any], serves: Mapping[str, Any] | None, way_back: str
) -> str:
    limits = order.deadlines
    once = limits.stop + limits.release + limits.gate + limits.load + limits.smoke
    usual = _usual(order.deployment, value)
    if not usual:
        usual = f"how long nothing serves is not known yet (at most {duration(once)})"
    if not serves or serves["seconds"] is None:
        return f"{usual.replace('nothing serves for', 'ready in')}; {way_back}"
    longest = duration(value["bound"])
    return f"{usual}, at most {longest} if it fails; back to {serves['deployment']} on failure"


def _usual(deployment: str, value: Mapping[str, Any]) -> str:
    """How long nothing serves, from what the host measured last; empty where it has not."""
    load = value.get("loads", {}).get(deployment)
    if load is None:
        return ""
    parts = value.get("phases", {}).get(deployment, {})
    told, down = f"load {duration(load)}", load + RESTART_SECONDS
    if parts:
        down = sum(parts.get(part, 0.0) for part in DOWN)
        if parts.get("weights"):
            told += f", of it {duration(parts['weights'])} for the weights"
    return f"nothing serves for about {duration(down)} ({told} last time)"


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
