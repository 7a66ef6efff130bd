"""What is generated from the models is current, and of use."""

from __future__ import annotations

import json
import re

import pytest
import yaml

from cutover.deployment import Deployment
from cutover.reference import DOCS, files, schema
from tests.unit.program.test_units import CATALOGUE


@pytest.mark.parametrize("name", files())
def test_the_generated_files_are_current(name: str) -> None:
    text = (DOCS / name).read_text(encoding="utf-8")
    assert text == files()[name], "run `python3 -m cutover.reference`"


def test_the_schema_knows_every_field_and_none_of_our_hints() -> None:
    found = json.loads(schema())
    assert set(found["properties"]) == set(Deployment.model_fields) - {"name"}
    assert found["additionalProperties"] is False
    assert '"allowed"' not in schema() and '"secret"' not in schema()
    assert all("description" in field for field in found["properties"].values())


def test_every_file_of_the_catalogue_names_the_schema_and_its_fields_are_in_it() -> None:
    folder = DOCS.parent / "deployments"
    known = json.loads(schema())
    for name in CATALOGUE:
        text = (folder / f"{name}.yaml").read_text(encoding="utf-8")
        line = re.match(r"# yaml-language-server: \$schema=(\S+)\n", text)
        assert line and (folder / line[1]).resolve() == DOCS / "deployment.schema.json"
        given = yaml.safe_load(text)
        assert set(given) <= set(known["properties"])
        assert set(known["required"]) <= set(given)


def test_the_example_of_the_page_is_a_deployment() -> None:
    page = files()["catalogue.md"]
    example = re.search(r"```yaml\n(.*?)```", page, re.S)
    assert example
    Deployment.model_validate({"name": "small", **yaml.safe_load(example[1])})
