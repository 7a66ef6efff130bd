"""One server, from its command line to its end."""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
import time
from functools import partial
from pathlib import Path
from typing import Any, NoReturn

from practice_engine import behaviour as behaviours
from practice_engine import options as command_line
from practice_engine import weights
from practice_engine.segments import Segments
from practice_engine.server import Server, Service
from practice_engine.style import Style
from practice_engine.tree import WATCHED, ChildDied, Tree
from practice_engine.worker import Task, work

POLL_SECONDS = 0.05
MAIN = "APIServer"


def run(style: Style) -> NoReturn:
    """Be this engine until a signal ends it."""
    options = command_line.with_config(command_line.parse(sys.argv[1:]))
    model = Path(command_line.first(options, style.model, "/models/none"))
    served = options.get("served-model-name") or [str(model)]
    behaviour = behaviours.read(style.name, served)
    if unknown := command_line.unknown(options, behaviour["known_options"]):
        program = Path(sys.argv[0]).name
        print(f"{program}: error: unrecognized arguments: {' '.join(unknown)}", file=sys.stderr)
        sys.exit(2)
    # Before the first thread and the first child: signals are waited for, not handled.
    signal.pthread_sigmask(signal.SIG_BLOCK, WATCHED)
    style.log(MAIN, f"{style.name} practice engine", "api_server.py:1351")
    # With the API key, as the real ones do where it is an argument.
    shown = {name: values[0] if len(values) == 1 else values for name, values in options.items()}
    style.log(MAIN, f"non-default args: {shown}", "utils.py:233")
    tokenizer = command_line.first(options, ["tokenizer", "tokenizer-path"], str(model))
    folder = command_line.first(options, ["hf-config-path"])
    if model.suffix == ".gguf":
        weights.check_tokenizer(Path(tokenizer))
        folder = folder or tokenizer
    config = weights.config_of(model, folder)
    if weights.has_fp8_cache(model, config):
        behaviour |= {"crash": "starting", "error": "fp8_kv_cache"}
    style.log(MAIN, f"Resolved architecture: {config.get('architectures')}", "model.py:637")

    server = Server(service_of(style, options, served, behaviour, model))
    if style.binds_early:
        server.take_port()
    tree, segments = Tree(behaviour["orphans"], [server.socket]), Segments()
    segments.add_socket()
    for name in ("psm_", "psm_", "sem.mp-"):
        segments.add(name)
    task = Task(style, behaviour, models_of(style, options, model), gpus_of(style, options))
    try:
        start_children(task, tree)
        stop = wait_ready(tree, len(task.gpus))
        if not stop:
            serve(style, server)
            while not stop:
                stop = tree.wait()
    except ChildDied as death:
        fail(style, tree, death)
    finish(behaviour, tree, segments)


def start_children(task: Task, tree: Tree) -> None:
    """vLLM's workers are children of its core process, SGLang's of the main one."""
    style = task.style
    if style.core:
        tree.spawn(style.core, partial(core, task, tree))
    else:
        spawn_workers(task, tree)
    if style.helper:
        tree.spawn(style.helper, idle)


def spawn_workers(task: Task, tree: Tree) -> None:
    """One for each GPU."""
    for rank in range(len(task.gpus)):
        tree.spawn(task.style.worker.format(rank), partial(work, task, rank, tree))


def core(task: Task, tree: Tree) -> int:
    """The process between vLLM's API server and its workers."""
    signal.pthread_sigmask(signal.SIG_BLOCK, WATCHED)
    spawn_workers(task, tree)
    try:
        while not tree.wait() or task.behaviour["ignore_term"]:
            pass
    except ChildDied:
        text = "EngineCore failed to start.\nException: WorkerProc initialization failed due to an "
        text += "exception in a background process. See stack trace for root cause."
        task.style.log("EngineCore_DP0", text, "core.py:946", "ERROR")
        return 1
    tree.end()
    return 0


def idle() -> int:
    """A process that is just there."""
    while True:
        signal.pause()


def wait_ready(tree: Tree, workers: int) -> int | None:
    """Until every worker serves, or a signal says stop."""
    while tree.ready < workers:
        if stop := tree.wait(POLL_SECONDS):
            return stop
    return None


def serve(style: Style, server: Server) -> None:
    """Open the port, in a thread beside the one that waits for signals."""
    if not style.binds_early:
        server.take_port()
    server.listen()
    threading.Thread(target=server.serve_forever, daemon=True).start()
    style.log(MAIN, "Application startup complete.", "launcher.py:38")
    if style.name == "sglang":
        style.log(MAIN, "The server is fired up and ready to roll!")


def fail(style: Style, tree: Tree, death: ChildDied) -> NoReturn:
    """One dead child ends the whole server; shared memory stays behind."""
    tree.kill()
    if style.name == "sglang":
        style.log(MAIN, "Received sigquit from a child process. It usually means the child failed.")
        os.kill(os.getpid(), signal.SIGKILL)
    text = "RuntimeError: Engine core initialization failed. See root cause above. "
    style.log(MAIN, f"{text}Failed core proc(s): {{'EngineCore_DP0': 1}} ({death})", level="ERROR")
    os._exit(1)


def finish(behaviour: dict[str, Any], tree: Tree, segments: Segments) -> NoReturn:
    """The orderly end: workers first, then what they shared."""
    if behaviour["ignore_term"]:
        while True:
            signal.pause()
    time.sleep(behaviour["stop_seconds"])
    tree.end()
    segments.remove()
    os._exit(0)


def gpus_of(style: Style, options: command_line.Options) -> list[int]:
    """The GPUs of the workers, in their order."""
    world = int(command_line.first(options, style.parallel, "1"))
    visible = os.environ.get("CUDA_VISIBLE_DEVICES")
    # The UUIDs of the practice GPUs end in their index, in two hexadecimal digits.
    named = [] if visible is None else visible.split(",")
    gpus = [int(name) if name.isdigit() else int(name[-2:], 16) for name in named]
    gpus = list(range(world)) if visible is None else gpus
    if len(gpus) < world:
        raise SystemExit(f"ValueError: World size ({world}) is larger than the number of GPUs.")
    return gpus[:world]


def models_of(style: Style, options: command_line.Options, model: Path) -> list[Path]:
    """The checkpoint, and the draft model's where there is one."""
    draft = command_line.first(options, style.draft)
    if speculative := command_line.first(options, ["speculative-config"]):
        draft = json.loads(speculative).get("model", "")
    return [model, Path(draft)] if draft else [model]


def service_of(
    style: Style,
    options: command_line.Options,
    served: list[str],
    behaviour: dict[str, Any],
    model: Path,
) -> Service:
    """What the server has to know to answer."""
    return Service(
        style=style,
        behaviour=behaviour,
        models=[behaviour["served_as"]] if behaviour["served_as"] else served,
        root=str(model),
        context=int(command_line.first(options, ["max-model-len", "context-length"], "131072")),
        keys=options.get("api-key") or [key for key in [os.environ.get("VLLM_API_KEY")] if key],
        reasons=bool(options.get("reasoning-parser")),
        host=command_line.first(options, ["host"], "127.0.0.1"),
        port=int(command_line.first(options, ["port"], str(style.default_port))),
    )
