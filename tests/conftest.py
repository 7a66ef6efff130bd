"""Says at the start which plugin the contract tests can run over."""

from __future__ import annotations

import os
import signal

# Some tests load gRPC, and some fork; its own work around a fork aborts the child now and then.
os.environ.setdefault("GRPC_ENABLE_FORK_SUPPORT", "0")
# The program starts some hundred times: without this each start would compile it anew.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
# A shell's background job ignores it, and so do its children: the CLI, which ends its plugins by
# it, then waits 5 s for each.
signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_report_header() -> str:
    real = os.environ.get("CUTOVER_REAL_PLUGIN")
    if real:
        return f"pulumi-command contract: the stand-in and {real}"
    return "pulumi-command contract: only the stand-in; CUTOVER_REAL_PLUGIN=/path adds the real one"
