"""The agent's command line: the steps of the program, and the tool of the person on call."""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
from typing import Any

# Everything is imported here, at the start: the archive may be replaced while this runs.
from . import (
    deploy,
    export,
    facts,
    launch,
    leftovers,
    lock,
    operate,
    recovery,
    repairs,
    resources,
    runbook,
    shown_plan,
    status,
    warm,
)
from .attempt import UNTIL, Journal
from .checks import Refused
from .converge import converge
from .follow import Failed
from .mask import hide
from .order import Declared, Order, OrderError
from .outlook import Wanted
from .store import Record, Store
from .systemd import SystemdError
from .transaction import Transaction
from .unit_text import Unreadable


def main() -> int:
    """Runs one command; its exit code is what a remote step or a monitor sees."""
    arguments = _parser().parse_args()
    if os.geteuid() != 0:
        print("cutover: run it as root, or with sudo", file=sys.stderr)
        return 77
    store = Store()
    if arguments.run not in (_facts, _export):
        store.prepare()
    try:
        return int(arguments.run(store, arguments))
    except (Failed, Refused, OrderError, SystemdError) as error:
        print(hide(str(error)), file=sys.stderr)
        return 1
    except (OSError, subprocess.SubprocessError) as error:
        print(f"cutover: {error}: see to it on the host, then run it again", file=sys.stderr)
        return 1


def _put(store: Store, arguments: argparse.Namespace) -> int:
    record = Record(arguments.owner, arguments.kind, arguments.deployment, arguments.unit)
    text = sys.stdin.buffer.read().decode(errors="surrogateescape")
    return _print(resources.put(store, record, text, arguments.repair))


def _converge(store: Store, arguments: argparse.Namespace) -> int:
    order = Order.from_json(sys.stdin.read())
    result = converge(store, order, arguments.until)
    if arguments.until == "staged":
        repairs.note(store, repairs.STAGE, arguments.repair)
    return _print(result)


def _warm(store: Store, arguments: argparse.Namespace) -> int:
    warm.step(store, Order.from_json(sys.stdin.read()))
    return _print({"receipt": arguments.receipt})


def _warming(store: Store, arguments: argparse.Namespace) -> int:
    warm.run(store)
    return 0


def _service(store: Store, arguments: argparse.Namespace) -> int:
    declared = Declared.from_json(sys.stdin.read())
    return _print(resources.service(store, arguments.owner, declared))


def _drop(store: Store, arguments: argparse.Namespace) -> int:
    resources.drop(store, arguments.owner)
    runbook.drop(store, arguments.owner)
    return 0


def _runbook(store: Store, arguments: argparse.Namespace) -> int:
    result = runbook.put(store, arguments.owner, arguments.path, sys.stdin.read())
    repairs.note(store, repairs.RUNBOOK, arguments.repair)
    return _print(result)


def _settle(store: Store, arguments: argparse.Namespace) -> int:
    archive = deploy.own_archive()
    deploy.settle(archive)
    repairs.note_agent(store, archive.stem)
    repairs.note(store, repairs.AGENT, arguments.repair)
    return _print({"receipt": archive.stem})


def _facts(store: Store, arguments: argparse.Namespace) -> int:
    request = json.loads(sys.stdin.readline().strip() or "{}")
    return _print(facts.facts(store, _wanted(request) if request else None))


def _wanted(request: dict[str, Any]) -> Wanted:
    order = Order.from_json(json.dumps(request["order"]))
    texts = (request["unit_text"], request["env_text"], request["env_digest"])
    return Wanted(order, *texts, tuple(request["others"]))


def _export(store: Store, arguments: argparse.Namespace) -> int:
    try:
        print(export.export(arguments.what), end="")
    except Unreadable as problem:
        print(f"{arguments.what}: {problem}", file=sys.stderr)
        return 1
    return 0


def _leave(store: Store, arguments: argparse.Namespace) -> int:
    if resources.leave(store, arguments.owner, arguments.keep):
        deploy.remove(store)
    return 0


def _transaction(store: Store, arguments: argparse.Namespace) -> int:
    journal = Journal(store, arguments.id)
    attempt = journal.load()
    if attempt is None:
        raise OrderError(f"there is no transaction {arguments.id} on this host")
    launch.heed_the_end()
    with lock.held("cutover"):
        Transaction(store, journal, attempt).run()
        runbook.write(store)
    return 0


def _recover(store: Store, arguments: argparse.Namespace) -> int:
    launch.heed_the_end()
    print(recovery.recover(store))
    return 0


def _status(store: Store, arguments: argparse.Namespace) -> int:
    code, facts = status.status(store)
    print(json.dumps(facts, indent=2) if arguments.json else status.describe(facts))
    return code


def _back(store: Store, arguments: argparse.Namespace) -> int:
    served = operate.back(store)
    print(f"{served['deployment']} serves again: `pulumi up` would switch forward once more")
    return 0


def _unlock(store: Store, arguments: argparse.Namespace) -> int:
    code, text = operate.unlock(store)
    print(text)
    return code


def _log(store: Store, arguments: argparse.Namespace) -> int:
    columns = shutil.get_terminal_size().columns if sys.stdout.isatty() else 0
    print(status.log(store, columns))
    return 0


def _plan(store: Store, arguments: argparse.Namespace) -> int:
    facts = shown_plan.facts(store)
    print(json.dumps(facts, indent=2) if arguments.json else shown_plan.table(facts))
    return 0


def _sweep(store: Store, arguments: argparse.Namespace) -> int:
    return leftovers.sweep_unit(store, arguments.unit, arguments.gpus)


def _print(value: object) -> int:
    print(json.dumps(value, sort_keys=True), flush=True)
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="cutover", description=__doc__)
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    shown = commands.add_parser("status", help="what this host serves; exit 0 when it is healthy")
    shown.add_argument("--json", action="store_true")
    shown.set_defaults(run=_status)
    commands.add_parser("log", help="what the cutovers of this host did").set_defaults(run=_log)
    back = commands.add_parser("back", help="serve what served before, through the same checks")
    back.set_defaults(run=_back)
    unlock = commands.add_parser("unlock", help="finish a cutover that broke off; 3: it is alive")
    unlock.set_defaults(run=_unlock)

    plan = commands.add_parser("plan", help="what a cutover would end now; touches nothing")
    plan.add_argument("--json", action="store_true")
    plan.set_defaults(run=_plan)
    # In a unit's ExecStartPre=; units that run hold this text: it stays valid.
    sweep = commands.add_parser("sweep")
    sweep.add_argument("unit")
    sweep.add_argument("--gpus", default="", help="such as 0,1, or UUIDs; left out, all")
    sweep.set_defaults(run=_sweep)

    taken = commands.add_parser("export", help="a catalogue file from a unit or a pid that serves")
    taken.add_argument("what", metavar="UNIT|PID")
    taken.set_defaults(run=_export)

    # The steps of the Pulumi program. Old states hold these texts: they stay valid.
    put = commands.add_parser("put")
    put.add_argument("kind", choices=("unit", "env"))
    put.add_argument("--owner", required=True)
    put.add_argument("--deployment", required=True)
    put.add_argument("--unit", required=True)
    put.add_argument("--repair", type=int, default=0, help="undo what was changed on the host")
    put.set_defaults(run=_put)
    book = commands.add_parser("runbook")
    book.add_argument("--owner", required=True)
    book.add_argument("--path", required=True)
    book.add_argument("--repair", type=int, default=0)
    book.set_defaults(run=_runbook)
    step = commands.add_parser("converge")
    step.add_argument("--until", required=True, choices=tuple(UNTIL))
    step.add_argument("--receipt", default="", help="only makes the step run again when it changes")
    step.add_argument("--repair", type=int, default=0)
    step.set_defaults(run=_converge)
    ahead = commands.add_parser("warm")
    ahead.add_argument("--receipt", default="")
    ahead.set_defaults(run=_warm)
    commands.add_parser("warming").set_defaults(run=_warming)
    service = commands.add_parser("service")
    service.add_argument("--owner", required=True)
    service.add_argument("--receipt", default="")
    service.set_defaults(run=_service)
    drop = commands.add_parser("drop")
    drop.add_argument("--owner", required=True)
    drop.set_defaults(run=_drop)
    settle = commands.add_parser("settle")
    settle.add_argument("--repair", type=int, default=0)
    settle.set_defaults(run=_settle)
    commands.add_parser("facts").set_defaults(run=_facts)
    leave = commands.add_parser("leave")
    leave.add_argument("--owner", required=True)
    leave.add_argument("--keep", action="store_true", help="what serves goes on, without the agent")
    leave.set_defaults(run=_leave)
    transaction = commands.add_parser("transaction")
    transaction.add_argument("id")
    transaction.set_defaults(run=_transaction)
    commands.add_parser("recover").set_defaults(run=_recover)
    return parser


if __name__ == "__main__":
    sys.exit(main())
