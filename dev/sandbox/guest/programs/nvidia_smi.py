#!/usr/bin/python3 -IS
"""The simulated GPUs' nvidia-smi: numbers follow the processes that are alive.

Formats and error texts are those of driver 580.159 on an H200. /etc/practice/gpu.json changes the
behaviour; every key is optional but `count`:

    count           how many GPUs there are
    delay_seconds   wait so long before answering
    idle_mib        {"0": 2}: MiB in use on a GPU with no process
    missing         [3]: GPUs that fell off the bus
    compute_apps    "listed", "hidden" (as in a container) or "foreign" (pids of an outer host)
    fields          {"5": {"remapped_rows.pending": "Yes"}}: other values for a GPU, "*" for all
    fake            {"stdout": "...", "stderr": "...", "exit_code": 9}: answer nothing else
"""

from __future__ import annotations

import json
import os
import sys
import time
import zlib

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    Config = dict[str, Any]
    Fields = dict[str, str]
    Held = dict[tuple[int, int], int]

sys.path.insert(0, "/usr/lib/practice")

from practice_gpu import MIB, TOTAL_MIB, holders  # noqa: E402

DRIVER = "580.159.04"
NAME = "NVIDIA RTX PRO 6000 Blackwell Server Edition"
ALIASES = {
    "gpu_name": "name",
    "gpu_uuid": "uuid",
    "gpu_bus_id": "pci.bus_id",
    "gpu_serial": "serial",
}
APP_ALIASES = {"used_memory": "used_gpu_memory", "name": "process_name"}
UNITS = {"memory": "MiB", "used_gpu_memory": "MiB", "utilization": "%", "power": "W"}


def main(arguments: list[str]) -> int:
    """Answer as the real one; the exit status."""
    time.sleep(read_config().get("delay_seconds", 0))
    config = read_config()  # it answers with what is so at the end of its delay
    if fake := config.get("fake"):
        sys.stdout.write(fake.get("stdout", ""))
        sys.stderr.write(fake.get("stderr", ""))
        return int(fake.get("exit_code", 0))
    if os.geteuid() and arguments[:1] != ["-L"]:
        # The driver sees every process; a script sees those of others only as root.
        sys.stdout.flush()
        os.execv("/usr/bin/sudo", ["sudo", "-n", "/usr/bin/nvidia-smi", *arguments])
    options, unknown = parse(arguments)
    if unknown:
        print(f"ERROR: Option {unknown} is not recognized. Please run 'nvidia-smi -h'.\n")
        return 255
    chosen, lost = choose(config, options.get("-i"))
    if not chosen and not lost:
        print("No devices were found")
        return 6
    for index in lost:
        place = bus_id(index).replace("0000", "", 1)
        print(f"Unable to determine the device handle for GPU{place}: Unknown Error")
    status = answer(config, options, chosen)
    return status or (15 if lost else 0)


def read_config() -> Config:
    """How the GPUs are to look."""
    with open("/etc/practice/gpu.json") as file:
        config: Config = json.load(file)
    return config


def parse(arguments: list[str]) -> tuple[dict[str, str], str | None]:
    """Options with their values, and the first one that is not known."""
    options: dict[str, str] = {}
    rest = list(arguments)
    while rest:
        name, separator, value = rest.pop(0).partition("=")
        if name in ("-i", "--id"):
            options["-i"] = value if separator else rest.pop(0)
        elif name in ("-L", "--list-gpus"):
            options["-L"] = ""
        elif name in ("--query-gpu", "--query-compute-apps", "--query-remapped-rows", "--format"):
            options[name] = value if separator else rest.pop(0)
        else:
            return options, name
    return options, None


def choose(config: Config, wanted: str | None) -> tuple[list[int], list[int]]:
    """Indexes of the GPUs asked for, by index, UUID or bus id: those there and those lost."""
    indexes = list(range(config["count"]))
    if wanted:
        names = wanted.split(",")
        indexes = [i for i in indexes if {str(i), uuid(i), bus_id(i)} & set(names)]
    missing = config.get("missing", [])
    return [i for i in indexes if i not in missing], [i for i in indexes if i in missing]


def answer(config: Config, options: dict[str, str], chosen: list[int]) -> int:
    """Print what was asked for about the chosen GPUs; the exit status."""
    if "-L" in options:
        for index in chosen:
            print(f"GPU {index}: {NAME} (UUID: {uuid(index)})")
        return 0
    held = holders()
    gpus = [gpu_fields(config, index, held) for index in chosen]
    form = options.get("--format", "csv").split(",")
    if not set(form) <= {"csv", "noheader", "nounits"}:
        print("Format modifier is not recognized.")
        return 2
    for query in ("--query-gpu", "--query-remapped-rows"):
        if query in options:
            return show(options[query], gpus, gpu_fields(config, 0, {}), ALIASES, form)
    apps = app_rows(config, gpus, held)
    if "--query-compute-apps" in options:
        known = app_fields(gpus[0] if gpus else gpu_fields(config, 0, {}), 0, "", 0)
        return show(options["--query-compute-apps"], apps, known, APP_ALIASES, form)
    table(gpus, apps)
    return 0


def gpu_fields(config: Config, index: int, held: Held) -> Fields:
    """Every field of --query-gpu that is known here, as text without its unit."""
    used = sum(size for (gpu, _), size in held.items() if gpu == index) // MIB
    used += config.get("idle_mib", {}).get(str(index), 0)
    fields = {
        "timestamp": time.strftime("%Y/%m/%d %H:%M:%S.000"),
        "index": str(index),
        "uuid": uuid(index),
        "name": NAME,
        "serial": str(1654524116000 + index),
        "count": str(config["count"]),
        "driver_version": DRIVER,
        "pci.bus_id": bus_id(index),
        "memory.total": str(TOTAL_MIB),
        "memory.used": str(used),
        "memory.free": str(TOTAL_MIB - 636 - used),
        "memory.reserved": "636",
        "utilization.gpu": "0",
        "utilization.memory": "0",
        "persistence_mode": "Enabled",
        "mig.mode.current": "Disabled",
        "mig.mode.pending": "Disabled",
        "compute_mode": "Default",
        "compute_cap": "12.0",
        "ecc.mode.current": "Enabled",
        "display_active": "Disabled",
        "pstate": "P0" if used else "P8",
        "temperature.gpu": "35",
        "power.draw": "84.10",
        "fabric.state": "N/A",
        "fabric.status": "N/A",
        "gpu_recovery_action": "None",
        "remapped_rows.correctable": "0",
        "remapped_rows.uncorrectable": "0",
        "remapped_rows.pending": "No",
        "remapped_rows.failure": "No",
    }
    changed = config.get("fields", {})
    return {**fields, **changed.get("*", {}), **changed.get(str(index), {})}


def app_rows(config: Config, gpus: list[Fields], held: Held) -> list[Fields]:
    """A row for each process that holds memory, as far as they are to be seen."""
    mode = config.get("compute_apps", "listed")
    if mode == "hidden":
        return []
    rows = []
    for gpu in gpus:
        for (index, pid), size in sorted(held.items()):
            if str(index) == gpu["index"] and mode == "listed":
                rows.append(app_fields(gpu, pid, process_name(pid), size // MIB))
            elif str(index) == gpu["index"]:
                rows.append(app_fields(gpu, pid + 1_000_000, "[Not Found]", size // MIB))
    return rows


def app_fields(gpu: Fields, pid: int, name: str, mib: int) -> Fields:
    """Every field of --query-compute-apps that is known here."""
    return {
        "timestamp": gpu["timestamp"],
        "pid": str(pid),
        "process_name": name,
        "gpu_uuid": gpu["uuid"],
        "gpu_bus_id": gpu["pci.bus_id"],
        "gpu_name": gpu["name"],
        "gpu_serial": gpu["serial"],
        "used_gpu_memory": str(mib),
        "gpu": gpu["index"],
    }


def process_name(pid: int) -> str:
    """The first word of its command line, or its title."""
    try:
        with open(f"/proc/{pid}/cmdline", "rb") as file:
            return file.read().split(b"\0")[0].decode(errors="replace") or "[Not Found]"
    except OSError:
        return "[Not Found]"


def show(
    query: str, rows: list[Fields], known: Fields, aliases: dict[str, str], form: list[str]
) -> int:
    """Print the fields asked for as CSV."""
    asked = query.replace(" ", "").split(",")
    names = [aliases.get(name, name) for name in asked]
    if wrong := [name for name in asked if aliases.get(name, name) not in known]:
        print(f'Field "{wrong[0]}" is not a valid field to query.\n')
        return 2
    if "noheader" not in form:
        print(", ".join(f"{name} [{unit(name)}]" if unit(name) else name for name in names))
    for row in rows:
        print(", ".join(with_unit(name, row[name], form) for name in names))
    return 0


def unit(name: str) -> str | None:
    """What a field is measured in."""
    return UNITS.get(name) or UNITS.get(name.split(".")[0])


def with_unit(name: str, value: str, form: list[str]) -> str:
    """A value as it is printed."""
    if unit(name) and "nounits" not in form and value[:1].isdigit():
        return f"{value} {unit(name)}"
    return value


def bus_id(index: int) -> str:
    """Where the card sits."""
    return f"00000000:{0x16 + 0x11 * index:02X}:00.0"


def uuid(index: int) -> str:
    """The same at every call, another one on another host."""
    host = zlib.crc32(os.uname().nodename.encode())
    return f"GPU-{host:08x}-1342-f3be-5b36-c06194ceda{index:02x}"


def table(gpus: list[Fields], apps: list[Fields]) -> None:
    """What a person sees without arguments."""
    wide, three = f"+{'-' * 89}+", f"+{'-' * 41}+{'-' * 24}+{'-' * 22}+"
    print(time.strftime("%a %b %d %H:%M:%S %Y       "))
    print(wide)
    print(f"| NVIDIA-SMI {DRIVER:<23}Driver Version: {DRIVER:<15}CUDA Version: 13.0     |")
    print(three)
    print(f"| GPU  Name{'Persistence-M':>30} | Bus-Id          Disp.A | Volatile Uncorr. ECC |")
    print(
        f"| Fan  Temp   Perf{'Pwr:Usage/Cap':>23} |           Memory-Usage | GPU-Util  Compute M. |"
    )
    print(f"| {'':<40}| {'':<23}| {'MIG M.':>20} |")
    print("|" + three.replace("-", "=")[1:-1] + "|")
    for gpu in gpus:
        memory = f"{gpu['memory.used']}MiB / {gpu['memory.total']}MiB"
        on, busy = "On" if gpu["persistence_mode"] == "Enabled" else "Off", gpu["utilization.gpu"]
        print(f"| {gpu['index']:>3}  {gpu['name']:<30.30}{on:>3}  ", end="")
        print(f"|{gpu['pci.bus_id']:>19} Off |{'0':>21} |")
        print(f"| N/A   35C    {gpu['pstate']:<4}{'84W /  600W':>22} ", end="")
        print(f"|{memory:>23} | {busy + '%':>7}      Default |")
        print(f"| {'':<40}| {'':<23}| {gpu['mig.mode.current']:>20} |")
        print(three)
    print(f"\n{wide}")
    print(f"| {'Processes:':<88}|")
    print(f"| {' GPU   GI   CI              PID   Type   Process name':<77}{'GPU Memory':<11}|")
    print(f"| {'       ID   ID':<77}{'Usage':<11}|")
    print(wide.replace("-", "=").replace("+", "|"))
    for app in apps:
        name, mib = app["process_name"], f"{app['used_gpu_memory']}MiB"
        print(f"| {app['gpu']:>4}   N/A  N/A{app['pid']:>16}      C   {name:<34.34}{mib:>12} |")
    if not apps:
        print(f"| {' No running processes found':<88}|")
    print(wide)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
