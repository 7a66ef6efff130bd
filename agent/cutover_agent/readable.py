"""Whether the user of a service can read what it has to read."""

from __future__ import annotations

import os
import pwd
from collections.abc import Sequence


def reasons(paths: Sequence[str], user: str) -> list[str]:
    """Why a user cannot open these files and folders; the first one that it cannot is named."""
    try:
        account = pwd.getpwnam(user)
    except KeyError:
        return [f"the user {user} is not on this host: create it, or name another"]
    out, told = os.pipe()
    child = os.fork()
    if child == 0:
        _answer(told, paths, account)
    os.close(told)
    with open(out, encoding="utf-8") as answer:
        refused = answer.read()
    os.waitpid(child, 0)
    return [f"the user {user} cannot read {refused}"] if refused else []


def _answer(told: int, paths: Sequence[str], account: pwd.struct_passwd) -> None:
    """The child: becomes the user for good, opens everything, and ends."""
    refused = ""
    try:
        os.initgroups(account.pw_name, account.pw_gid)
        os.setgid(account.pw_gid)
        os.setuid(account.pw_uid)
        for path in paths:
            refused = path
            os.close(os.open(path, os.O_RDONLY))
        refused = ""
    except OSError as error:
        refused = f"{refused}: {error.strerror}"
    finally:
        os.write(told, refused.encode())
        os._exit(0)
