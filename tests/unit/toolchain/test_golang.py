from __future__ import annotations

import pytest

from toolchain.golang import older, required

GO_MOD = """module m

go 1.26.6

require example.invalid/one v1.2.3

require (
\texample.invalid/two/v3 v3.4.5 // indirect
)
"""


@pytest.mark.parametrize(
    ("module", "version"),
    [
        ("go", "1.26.6"),
        ("example.invalid/one", "v1.2.3"),
        ("example.invalid/two/v3", "v3.4.5"),
    ],
)
def test_a_version_is_read_from_go_mod(module: str, version: str) -> None:
    assert required(GO_MOD, module) == version


def test_a_module_that_go_mod_does_not_require_is_an_error() -> None:
    with pytest.raises(ValueError, match="requires no example"):
        required(GO_MOD, "example.invalid/two")


@pytest.mark.parametrize(
    ("version", "than", "is_older"),
    [
        ("go1.9", "1.26.6", True),
        ("go1.19.8", "1.26.6", True),
        ("go1.26", "1.26.6", True),
        ("go1.26.6", "1.26.6", False),
        ("go1.26.10", "1.26.6", False),
        ("go1.27rc1", "1.26.6", False),
        ("go2.0", "1.26.6", False),
    ],
)
def test_go_versions_compare_as_numbers(version: str, than: str, is_older: bool) -> None:
    assert older(version, than) is is_older
