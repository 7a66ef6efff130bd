"""Asks a model server: is it there, is it the right model, does it answer."""

from __future__ import annotations

import http.client
import json
import time
import urllib.error
import urllib.request
from dataclasses import dataclass
from typing import Any, NamedTuple, Optional

from .clock import Deadline
from .order import Probe

# The host's proxy variables are for the outside; the server is on the host itself.
_OPENER = urllib.request.build_opener(urllib.request.ProxyHandler({}))

SHORT_SECONDS = 5
MOST_BYTES = 4 << 20


class WrongServer(RuntimeError):
    """The server answers, but waiting longer will not make it right; the text says why."""


@dataclass(frozen=True)
class Answer:
    """What the model said to the smoke request."""

    text: str
    tokens: int
    seconds: float
    still_thinking: bool = False
    """Whether its tokens were used up before it had an answer."""

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
    if code == 404:
        raise WrongServer(
            f"{probe.url}{probe.health} answers 404: is that the engine, and its health path?"
        )
    if code != 200:
        return False
    code, body = _request(f"{probe.url}/v1/models", key)
    if code in (401, 403):
        raise WrongServer(f"{probe.url}/v1/models answers {code}: the API key is not accepted")
    if code == 404:
        raise WrongServer(f"{probe.url}/v1/models answers 404: that is no OpenAI-like server")
    if code != 200:
        return False
    names = model_names(body)
    if probe.model not in names:
        raise WrongServer(f"{probe.url} serves {', '.join(names) or 'no model'}, not {probe.model}")
    return True


def models(url: str, key: str) -> list[str]:
    """What a server at an address lists; empty where it does not answer as one."""
    code, body = _request(f"{url}/v1/models", key)
    return model_names(body) if code == 200 else []


def metrics(url: str) -> tuple[bool, str]:
    """Whether a server answers, and its metrics; empty where it has none for us."""
    code, body = _request(f"{url}/metrics", None)
    return code != 0, body if code == 200 else ""


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
        raise WrongServer(f"the smoke request got {body}")
    if code != 200:
        raise WrongServer(f"the smoke request is answered {code}: {body[:200]}")
    read = read_completion(body)
    if not read.still_thinking and probe.expect.lower() not in read.text.lower():
        raise WrongServer(f"the answer {read.text[:80]!r} does not hold {probe.expect!r}")
    return Answer(read.text, read.tokens, took, read.still_thinking)


class Completion(NamedTuple):
    """What a chat completion holds."""

    text: str
    tokens: int
    still_thinking: bool


def read_completion(body: str) -> Completion:
    """Reads a chat completion.

    A reasoning model may spend its budget on thoughts and leave the content empty: thoughts count
    as text, under either of the names that engines use. Raises WrongServer where there is neither.
    """
    try:
        value = json.loads(body)
        choice = value["choices"][0]
        message: dict[str, Any] = dict(choice["message"])
        tokens = int(value["usage"]["completion_tokens"])
    except (ValueError, KeyError, IndexError, TypeError):
        raise WrongServer(f"the answer is no chat completion: {body[:200]}") from None
    for name in ("content", "reasoning_content", "reasoning"):
        if message.get(name):
            cut = name != "content" and choice.get("finish_reason") == "length"
            return Completion(str(message[name]), tokens, cut)
    raise WrongServer(f"the answer holds no text: {body[:200]}")


def _request(
    url: str,
    key: Optional[str],
    payload: Optional[dict[str, Any]] = None,
    seconds: float = SHORT_SECONDS,
) -> tuple[int, str]:
    """Status and body; status 0 and the reason when there is no whole answer in time."""
    data = None if payload is None else json.dumps(payload).encode()
    deadline = Deadline(seconds)
    try:
        request = urllib.request.Request(url, data, {"Content-Type": "application/json"})
        if key:
            request.add_header("Authorization", f"Bearer {key}")
        try:
            response = _OPENER.open(request, timeout=seconds)
        except urllib.error.HTTPError as error:
            response = error
        with response:
            return response.status, _body(response, deadline)
    except (OSError, ValueError, http.client.HTTPException) as error:
        late = deadline.passed or isinstance(error, TimeoutError)
        reason = getattr(error, "reason", None) or error
        return 0, f"no answer within {seconds:.0f} s" if late else f"no answer: {reason}"


def _body(response: Any, deadline: Deadline) -> str:
    """The whole body; TimeoutError where it trickles in for longer than there is time."""
    parts: list[bytes] = []
    while True:
        part = response.read1(65536)
        if not part:
            break
        parts.append(part)
        if deadline.passed or sum(map(len, parts)) > MOST_BYTES:
            raise TimeoutError
    missing = getattr(response, "length", 0)
    if missing:
        raise http.client.IncompleteRead(b"", missing)
    return b"".join(parts).decode(errors="replace")
