"""Raw additions to a unit: which are refused or warned about, because they break a cutover."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator

from cutover.fields import matching, not_allowed, plain_text

Fault = tuple[tuple[str, ...], str]


def raw_value(value: Any) -> Any:
    """Accepts one value or a list of them, each of which stays on its own line."""
    for item in value if isinstance(value, list) else [value]:
        if not isinstance(item, str) or plain_text(item).endswith("\\"):
            not_allowed()
    return value


Value = Annotated[str | list[str], BeforeValidator(raw_value)]
Directive = Annotated[str, matching(r"[A-Z][A-Za-z0-9]*")]
Section = Literal["Unit", "Service"]
Additions = dict[Section, dict[Directive, Value]]


def _from(field: str) -> str:
    return f"is written from {field}: set that instead"


_HIDES = "hides the GPUs from the server: remove it"
_DERIVED = "is derived from timeouts and restart, and stands in [Unit]: remove it"

WRITTEN = {
    "Description": _from("description"),
    "ExecStart": _from("engine and args"),
    "User": _from("user"),
    "WorkingDirectory": _from("working_directory"),
    "Environment": _from("env"),
    "EnvironmentFile": "is written from secrets, with a path of its own: set that instead",
    "Restart": _from("restart.policy"),
    "RestartSec": _from("restart.seconds"),
    "TimeoutStartSec": _from("timeouts.load"),
    "TimeoutStopSec": _from("timeouts.stop"),
    "TimeoutSec": _from("timeouts.load and timeouts.stop"),
    "LimitMEMLOCK": _from("limits.memlock"),
    "LimitNOFILE": _from("limits.nofile"),
    "StartLimitIntervalSec": _DERIVED,
    "StartLimitInterval": _DERIVED,
    "StartLimitBurst": _DERIVED,
    "Type": "is exec: engines send no ready message, the host asks the model instead: remove it",
    "KillMode": "is mixed: with any other, workers outlive the server or are shot at once: "
    "remove it",
    "SyslogIdentifier": "is the deployment's name: remove it",
    "StandardOutput": "is the journal, from which progress and causes are read: remove it",
    "StandardError": "is the journal, from which progress and causes are read: remove it",
}
BREAKS = {
    "PrivateDevices": _HIDES,
    "DevicePolicy": _HIDES,
    "DeviceAllow": _HIDES,
    "ProtectClock": "allows one device and so " + _HIDES,
    "PrivateUsers": _HIDES,
    "RootDirectory": _HIDES,
    "RootImage": _HIDES,
    "DynamicUser": "changes who runs it at each start: set user instead",
    "PrivateNetwork": "hides the server's port from everybody: remove it",
    "PrivateIPC": "hides the shared memory that a release has to clear: remove it",
    "RemainAfterExit": "hides that the server has ended: remove it",
    "SendSIGKILL": "lets workers outlive a stop: remove it",
    "WatchdogSec": "kills a server that sends no watchdog message, as engines do: remove it",
    "RefuseManualStart": "keeps a cutover from starting the unit: remove it",
    "RefuseManualStop": "keeps a cutover from stopping the unit: remove it",
}
WARNED = {
    "ExecStartPre": "runs before each start, within timeouts.load, and its `$` and `%` are "
    "systemd's",
    "ExecStartPost": "runs before the unit counts as started",
    "ExecStop": "runs at each stop, within timeouts.stop",
    "MemoryDenyWriteExecute": "keeps kernels from being compiled at run time",
    "ProtectHome": "hides checkpoints and compile caches in home folders",
    "ProtectSystem": "may keep compile caches from being written",
    "NoNewPrivileges": "keeps nvidia-modprobe from making the devices for a user that is not root",
    "ProtectKernelModules": "keeps the driver's modules from being loaded",
    "RestrictAddressFamilies": "may take the sockets away over which the GPUs' workers talk",
    "SystemCallFilter": "may refuse calls of the driver",
    "MemoryMax": "kills a load that needs more, page cache of the checkpoint included",
    "TasksMax": "may be too few for the threads of all workers",
    "UnsetEnvironment": "takes variables away that env and secrets set",
    "BindsTo": "stops the server with another unit",
    "PartOf": "stops the server with another unit",
    "JobTimeoutSec": "may end a start before timeouts.load",
}
_HARMLESS = frozenset(("no", "false", "0", "off"))
_SWITCHES = frozenset(("PrivateDevices", "ProtectClock", "PrivateUsers", "DynamicUser",
                       "PrivateNetwork", "PrivateIPC", "RemainAfterExit", "RefuseManualStart",
                       "RefuseManualStop"))  # fmt: skip


def additions_refused(additions: Additions) -> Iterator[Fault]:
    """Additions that would break a cutover, or that a field writes already."""
    for section, directives in additions.items():
        for name, value in directives.items():
            if name in _SWITCHES and value in _HARMLESS:
                continue
            reason = WRITTEN.get(name) or BREAKS.get(name)
            if reason:
                yield ("additions", section, name), reason


def additions_warned(additions: Additions) -> Iterator[Fault]:
    """Additions that work and yet are doubtful."""
    for section, directives in additions.items():
        for name in directives.keys() & WARNED.keys():
            yield ("additions", section, name), WARNED[name]


def addition_lines(directives: Mapping[str, str | list[str]]) -> list[str]:
    """The lines of one section."""
    return [
        f"{name}={item}"
        for name, value in directives.items()
        for item in ([value] if isinstance(value, str) else value)
    ]
