"""Takes secrets out of text of the host before it is shown or kept."""

from __future__ import annotations

import re

HIDDEN = "[secret]"

_NAME = r"[\w.-]*(?:key|token(?!s|iz)|secret|passw(?:or)?d)[\w.-]*"
_VALUE = r"""(?:\[[^\]]*\]|'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|[^\s,)}\]'"]+)"""
_OPTION = re.compile(rf"(--{_NAME}(?:\s+|=))(?!-){_VALUE}", re.I)
# An engine logs its arguments as it holds them: `'api_key': ['x']` or `api_key='x'`.
_LOGGED = re.compile(rf"(\b{_NAME}['\"]?\s*[=:]\s*)(?!None\b|\[secret\]){_VALUE}", re.I)
_BEARER = re.compile(r"(\bBearer\s+)[\w.~+/=-]+", re.I)


def hide(text: str) -> str:
    """The text without the values of options and variables that are named like a secret.

    Counts of tokens and tokenizers are no secrets and stay.
    """
    for pattern in (_OPTION, _LOGGED, _BEARER):
        text = pattern.sub(rf"\g<1>{HIDDEN}", text)
    return text
