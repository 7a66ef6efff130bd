"""Which text of the host is a secret."""

from __future__ import annotations

import pytest

from cutover_agent.mask import hide

POISON = "sk-poison-123"


@pytest.mark.parametrize(
    "text",
    [
        f"--api-key {POISON}",
        f"--api-key={POISON}",
        f"--api-key '{POISON} and more'",
        f"--admin-api-key {POISON} --port 8000",
        f"--hf-token {POISON}",
        f"--hf_token={POISON}",
        f"--ssl-keyfile-password {POISON}",
        f"'api_key': ['{POISON}', 'other-{POISON}'], 'port': 8000",
        f"ServerArgs(api_key='{POISON}', tp_size=8)",
        f"HF_TOKEN={POISON}",
        f"Environment=VLLM_API_KEY={POISON}",
        f"Authorization: Bearer {POISON}",
        f'{{"api_key": "{POISON}"}}',
    ],
)
def test_a_secret_is_taken_out(text: str) -> None:
    assert POISON not in hide(text)
    assert "[secret]" in hide(text)


@pytest.mark.parametrize(
    "text",
    [
        "--max-num-batched-tokens 8192 --tp 8",
        "--tokenizer /models/GLM-5 --port 8000",
        "max_tokens=512, tokenizer_mode='auto'",
        "'Paris', 397.3 tokens/s",
        "api_key=None",
        "load 37/119 shards, 212 s",
        "--trust-remote-code --enable-expert-parallel",
    ],
)
def test_what_is_no_secret_stays(text: str) -> None:
    assert hide(text) == text


def test_what_is_hidden_once_stays_as_it_is() -> None:
    once = hide(f"--api-key {POISON} 'token': '{POISON}'")
    assert hide(once) == once
