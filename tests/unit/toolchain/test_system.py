from __future__ import annotations

from toolchain.system import missing


def test_only_packages_whose_proof_is_missing_are_installed() -> None:
    proofs = {"one": "command", "two": "/etc/file", "three": "other"}
    assert missing(proofs, there={"command"}.__contains__) == ["two", "three"]
    assert missing(proofs, there=lambda _: True) == []
