"""The catalogue's folder and files."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from cutover.advice import advice
from cutover.catalogue import load_catalogue
from cutover.errors import ConfigError
from tests.unit.program.samples import fields

ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    path = tmp_path / "deployments"
    path.mkdir()
    return path


def refusal(folder: Path) -> str:
    with pytest.raises(ConfigError) as raised:
        load_catalogue(folder)
    return str(raised.value)


def add(folder: Path, name: str, **changes: object) -> None:
    (folder / name).write_text(yaml.safe_dump(fields(**changes)))


def test_deployments_are_named_by_their_files_and_sorted(folder: Path) -> None:
    for name in ("b", "a", "c-2"):
        add(folder, f"{name}.yaml", unit=f"{name}.service")
    (folder / "README.md").write_text("not a deployment")
    (folder / ".b.yaml.swp").write_text("nor this")
    (folder / ".#b.yaml").write_text("nor this")
    loaded = load_catalogue(folder)
    assert list(loaded) == ["a", "b", "c-2"]
    assert [one.name for one in loaded.values()] == ["a", "b", "c-2"]


def test_two_deployments_of_one_unit_are_both_named(folder: Path) -> None:
    add(folder, "a.yaml")
    add(folder, "b.yaml")
    assert refusal(folder) == (
        "deployments/b.yaml: unit: vllm-small.service is the unit of deployments/a.yaml too: "
        "give each its own"
    )


def test_deployments_may_share_a_port(folder: Path) -> None:
    add(folder, "a.yaml")
    add(folder, "b.yaml", unit="other.service")
    assert len({one.listen.port for one in load_catalogue(folder).values()}) == 1


def test_faults_of_several_files_are_told_together(folder: Path) -> None:
    add(folder, "a.yaml", engine="x")
    add(folder, "b.yaml", gpus=0)
    assert [line.split(": ")[:2] for line in refusal(folder).split("\n")] == [
        ["deployments/a.yaml", "engine"],
        ["deployments/b.yaml", "gpus"],
    ]


def test_a_missing_folder_is_named(tmp_path: Path) -> None:
    assert refusal(tmp_path / "deploy") == (
        "deploy: no such folder: set catalogue to the one that has them"
    )


def test_an_empty_folder_is_named(folder: Path) -> None:
    assert refusal(folder) == "deployments: holds no deployment: add a file such as model.yaml"


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("a.yml", "deployments/a.yml: is left out by its name: rename it to a.yaml"),
        (
            "A_1.yaml",
            "deployments/A_1.yaml: its name is not a legal name: use a-z, 0-9 and dashes inside, "
            "at most 63 letters",
        ),
    ],
)
def test_a_file_that_is_named_wrongly_is_not_passed_over(
    folder: Path, name: str, expected: str
) -> None:
    add(folder, name)
    assert refusal(folder) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a: b: c\n", "line 1: not valid YAML (mapping values are not allowed here): correct it"),
        ("unit: a.service\nunit: b.service\n", "line 2: not valid YAML (unit twice): correct it"),
        (
            "unit: a\nargs:\n  x: 1\n  y: 2\n  x: 3\n",
            "line 5: not valid YAML (x twice): correct it",
        ),
        ("a: [1\n", "line 2: not valid YAML (expected ',' or ']', but got '<stream end>'): "),
        ("a:\n\tb: 1\n", "line 2: not valid YAML (found character '\\t' that cannot start any "),
        ("a: !!python/name:os.system x\n", "line 1: not valid YAML (could not determine a "),
        ("a: x\0\n", "not valid YAML (unacceptable character #x0000: special characters are not "),
        ("", "holds no mapping: give fields with their values"),
        ("- a\n", "holds no mapping: give fields with their values"),
        ("name: x\n", "name: is the file's own name: remove it"),
    ],
)
def test_bad_yaml_is_one_sentence_with_its_line(folder: Path, text: str, expected: str) -> None:
    (folder / "a.yaml").write_text(text)
    told = refusal(folder)
    assert told.startswith(f"deployments/a.yaml: {expected}")
    assert "\n" not in told


def test_bytes_that_are_no_text_are_one_sentence(folder: Path) -> None:
    (folder / "a.yaml").write_bytes(b"unit: \xff\n")
    assert refusal(folder) == "deployments/a.yaml: is not text in UTF-8: save it as such"


def test_a_file_with_windows_line_ends_is_the_same_deployment(folder: Path) -> None:
    add(folder, "a.yaml", args={"x": "y"})
    unix = load_catalogue(folder)
    text = (folder / "a.yaml").read_text()
    (folder / "a.yaml").write_bytes(text.replace("\n", "\r\n").encode())
    assert load_catalogue(folder) == unix


@pytest.mark.parametrize(
    ("written", "argument"),
    [
        ("0.90", "0.90"),
        ("1.0e-5", "1.0e-5"),
        ("010", "010"),
        ("0x10", "0x10"),
        ("1_000", "1_000"),
        ("12:30:45", "12:30:45"),
        ("2024-01-31", "2024-01-31"),
        ("+5", "+5"),
        ("-5", "-5"),
        (".5", ".5"),
        ("131072", "131072"),
        ("1e6", "1e6"),
        ("{a: 0.50, b: [1, true, null], c: 'é'}", '{"a":0.5,"b":[1,true,null],"c":"é"}'),
    ],
)
def test_an_argument_reaches_the_command_line_as_it_was_written(
    folder: Path, written: str, argument: str
) -> None:
    from cutover.option import option

    text = yaml.safe_dump(fields()) + f"args:\n  x: {written}\n"
    (folder / "a.yaml").write_text(text)
    (value,) = load_catalogue(folder)["a"].args.values()
    assert option("x", value) == ["--x", argument]


def test_the_five_deployments_of_the_project_are_there_and_nothing_about_them_is_doubtful() -> None:
    loaded = load_catalogue(ROOT / "deployments")
    assert {name: one.unit for name, one in loaded.items()} == {
        "glm5": "vllm-glm5.service",
        "kimi-k25": "vllm-kimi-k25.service",
        "kimi-k25-int4": "vllm-kimi-k25-int4.service",
        "kimi-k25-int4-sglang": "sglang-kimi-k25-int4.service",
        "minimax-m25": "vllm-minimax-m25.service",
    }
    assert [sentence for one in loaded.values() for sentence in advice(one)] == []
    assert {len(one.gpus) for one in loaded.values()} == {8}
