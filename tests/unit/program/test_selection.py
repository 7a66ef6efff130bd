"""Settings against the catalogue."""

from __future__ import annotations

from typing import Any

import pytest

from cutover.catalogue import Deployment
from cutover.errors import ConfigError
from cutover.selection import active_deployments
from cutover.settings import load_settings
from tests.unit.program.samples import deployment, host, settings

FILE = "Pulumi.prod.yaml"


def choose(catalogue: list[Deployment], **changes: Any) -> Deployment:
    by_name = {one.name: one for one in catalogue}
    chosen = active_deployments(load_settings(settings(**changes), FILE), by_name, FILE)
    return next(iter(chosen.values()))


def refusal(catalogue: list[Deployment], **changes: Any) -> str:
    with pytest.raises(ConfigError) as raised:
        choose(catalogue, **changes)
    return str(raised.value)


def test_the_active_deployment_is_found_by_its_name() -> None:
    assert choose([deployment("other"), deployment("small")]).name == "small"


def test_a_name_that_is_nearly_right_is_asked_about_and_all_are_listed() -> None:
    assert refusal([deployment("large"), deployment("small")], active="smal") == (
        "Pulumi.prod.yaml: active: no deployment is named smal: did you mean small? "
        "There is large, small"
    )


def test_a_name_like_no_other_lists_all() -> None:
    assert refusal([deployment("large"), deployment("small")], active="x") == (
        "Pulumi.prod.yaml: active: no deployment is named x: there is large, small"
    )


def test_a_secret_without_a_value_names_the_command_that_sets_it() -> None:
    catalogue = [deployment(), deployment("other", secrets=["HF_TOKEN"])]
    assert refusal(catalogue) == (
        "Pulumi.prod.yaml: secrets.HF_TOKEN: is missing, and other needs it: run "
        "`pulumi config set --secret --path secrets.HF_TOKEN`"
    )
    assert choose(catalogue, secrets={"HF_TOKEN": "x"})


def test_a_host_with_too_few_gpus_for_the_active_deployment_is_named() -> None:
    catalogue = [deployment(gpus=[4, 5])]
    assert choose(catalogue, hosts={"a": host(gpus=6)})
    assert refusal(catalogue, hosts={"a": host(gpus=5)}) == (
        "Pulumi.prod.yaml: hosts.a.gpus: 5 are too few for small, which fills GPU 5: "
        "choose another deployment or host"
    )


def test_a_host_may_name_its_own_active_deployment() -> None:
    catalogue = {name: deployment(name) for name in ("small", "other")}
    hosts = {"a": host(), "b": host(address="b.invalid", active="other")}
    chosen = active_deployments(load_settings(settings(hosts=hosts), FILE), catalogue, FILE)
    assert {name: one.name for name, one in chosen.items()} == {"a": "small", "b": "other"}
    hosts["b"]["active"] = "othr"
    assert "hosts.b.active: no deployment is named othr: did you mean other?" in refusal(
        list(catalogue.values()), hosts=hosts
    )
