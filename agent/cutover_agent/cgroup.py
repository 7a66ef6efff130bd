"""What the path of a control group says: unit, container, login session."""

from __future__ import annotations

import re

_UNIT = re.compile(r"[^/]+\.(service|scope|slice)")
_CONTAINERS = (
    re.compile(r"/(?:docker|libpod|podman|cri-containerd|crio|nerdctl|buildkit)-([^/]+)\.scope"),
    re.compile(r"/(?:docker|libpod_parent|garden|nerdctl|actions_job|ecs/[^/]+)/([^/]+)"),
    re.compile(r"/kubepods[^/]*/(?:[^/]+/)*?(?:pod[^/]+)/([^/]+)"),
    re.compile(r"/lxc(?:\.payload)?[./]([^/]+)"),
    re.compile(r"/machine\.slice/machine-([^/]+)\.scope"),
    re.compile(r"/(?:systemd-nspawn@|libpod-|docker-)([^/]+?)\.service"),
    re.compile(r"/(?:kubepods|docker|containerd|libpod|machine\.slice)[^/]*/([^/]+)"),
    re.compile(r"/system\.slice:[^/]*:([^/]+)|/(?:cri-containerd|containerd):([^/]+)"),
)


def cgroup_of(text: str) -> str:
    """The path in /proc/PID/cgroup that systemd keeps: pure v2, hybrid or v1.

    On a hybrid or v1 host the `name=systemd` line has the units; the `0::` line may be bare.
    """
    unified = ""
    for line in text.splitlines():
        number, controllers, path = line.split(":", 2)
        if controllers == "name=systemd":
            return path
        if number == "0":
            unified = path
    return unified


def inside(path: str, first: str) -> str:
    """A path without what lies above this host, which may be a container.

    `first` is the path of the host's first process.
    """
    top = first.removesuffix("/init.scope").rstrip("/")
    return path[len(top) :] or "/" if top and (path + "/").startswith(f"{top}/") else path


def unit_of(path: str) -> str:
    """The unit that owns a control group: its first service or scope, else its last slice.

    Inside `user@.service` the units of the user's own manager come after it and are not this
    manager's.
    """
    names = [part for part in path.split("/") if _UNIT.fullmatch(part)]
    for name in names:
        if not name.endswith(".slice"):
            return name
    return names[-1] if names else ""


def container_of(path: str) -> str:
    """Id or name of the container that owns a control group; empty where none does."""
    for pattern in _CONTAINERS:
        match = pattern.search(path)
        if match:
            return next(filter(None, match.groups()), "?")
    return ""


def session_of(path: str) -> str:
    """The login session that owns a control group, such as `session-3.scope`; empty for none."""
    match = re.search(r"/(session-[^/]+\.scope|user@\d+\.service)", path)
    return match.group(1) if match else ""


def users_service_of(path: str) -> str:
    """The service of a user's own service manager that owns a control group; empty for none."""
    match = re.search(r"/user@\d+\.service/(?:.*/)?([^/]+\.service)(?:/|$)", path)
    return match.group(1) if match else ""
