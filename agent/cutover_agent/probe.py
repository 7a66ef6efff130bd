"""Asks a model server: is it there, is it the right model, does it answer."""

from __future__ import annotations

import http.client
import json
import time
import urllib.error
import urllib.request
from dataclasses import dataclass
from typing import Any, Optional

from .order import Probe

# The host's proxy variables are for the outside; the server is on the host itself.
_OPENER = urllib.request.build_opener(urllib.request.ProxyHandler({}))

SHORT_SECONDS = 5


class WrongServer(RuntimeError):
    """The server answers, but waiting longer will not make it right; the text says why."""


@dataclass(frozen=True)
class Answer:
    """What the model said to the smoke request."""

    text: str
    tokens: int
    seconds: float

    @property
    def tokens_per_second(self) -> float:
        """Completion tokens over the whole request's time, prompt included."""
        return round(self.tokens / self.seconds, 1) if self.seconds else 0.0


def ready(probe: Probe, key: Optional[str]) -> bool:
    """Whether the server is healthy and lists the model.

    Raises WrongServer when it refuses our key or serves another model.
    """
    code, _ = _request(f"{probe.url}{probe.health}", key)
    if code in (401, 403):
        raise WrongServer(f"{probe.url}{probe.health} answers {code}: the API key is not accepted")
    if code != 200:
        return False
    code, body = _request(f"{probe.url}/v1/models", key)
    if code in (401, 403, 404):
        raise WrongServer(f"{probe.url}/v1/models answers {code}")
    if code != 200:
        return False
    names = model_names(body)
    if probe.model not in names:
        raise WrongServer(f"{probe.url} serves {', '.join(names) or 'no model'}, not {probe.model}")
    return True


def model_names(body: str) -> list[str]:
    """Ids in an answer of /v1/models; empty where it is not such an answer."""
    try:
        return [str(entry["id"]) for entry in json.loads(body)["data"]]
    except (ValueError, KeyError, TypeError):
        return []


def smoke(probe: Probe, key: Optional[str], seconds: float) -> Answer:
    """One chat completion; raises WrongServer when the answer proves nothing."""
    question = {
        "model": probe.model,
        "messages": [{"role": "user", "content": probe.prompt}],
        "max_tokens": probe.max_tokens,
        "temperature": 0,
    }
    started = time.monotonic()
    code, body = _request(f"{probe.url}/v1/chat/completions", key, question, seconds)
    took = time.monotonic() - started
    if code == 0:
        raise WrongServer(f"no answer to the smoke request within {seconds:.0f} s")
    if code != 200:
        raise WrongServer(f"the smoke request is answered {code}: {body[:200]}")
    text, tokens = read_completion(body)
    if probe.expect.lower() not in text.lower():
        raise WrongServer(f"the answer {text[:80]!r} does not hold {probe.expect!r}")
    return Answer(text, tokens, took)


def read_completion(body: str) -> tuple[str, int]:
    """Text and token count of a chat completion.

    A reasoning model may spend its budget on thoughts and leave the content empty: thoughts count
    as text, under either of the names that engines use. Raises WrongServer where there is neither.
    """
    try:
        value = json.loads(body)
        message: dict[str, Any] = value["choices"][0]["message"]
        tokens = int(value["usage"]["completion_tokens"])
    except (ValueError, KeyError, IndexError, TypeError):
        raise WrongServer(f"the answer is no chat completion: {body[:200]}") from None
    for name in ("content", "reasoning_content", "reasoning"):
        if message.get(name):
            return str(message[name]), tokens
    raise WrongServer(f"the answer holds no text: {body[:200]}")


def _request(
    url: str,
    key: Optional[str],
    payload: Optional[dict[str, Any]] = None,
    seconds: float = SHORT_SECONDS,
) -> tuple[int, str]:
    """Status and body; status 0 when nobody answers in time."""
    data = None if payload is None else json.dumps(payload).encode()
    request = urllib.request.Request(url, data, {"Content-Type": "application/json"})
    if key:
        request.add_header("Authorization", f"Bearer {key}")
    try:
        with _OPENER.open(request, timeout=seconds) as response:
            return response.status, response.read().decode(errors="replace")
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode(errors="replace")
    except (OSError, ValueError, http.client.HTTPException):  # refused, reset, late, or not HTTP
        return 0, ""
