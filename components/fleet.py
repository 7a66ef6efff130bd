"""All hosts of the stack, from its config and the catalogue."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pulumi
from pulumi.runtime.config import CONFIG, get_config_env

from components.facts import Facts, Question
from cutover.advice import advice
from cutover.catalogue import load_catalogue
from cutover.errors import ConfigError
from cutover.facts import NO_FACTS, Answer, NoFacts
from cutover.host import Keys
from cutover.orders import order_for
from cutover.selection import active_deployments
from cutover.settings import Settings, load_settings, private_key, proxy_key
from cutover.units import Rendered, render_files

if TYPE_CHECKING:
    from components.step import Step

ALREADY_TOLD = 32
"""Exit status by which Pulumi's Python host knows that the error is on the screen already."""


def fleet() -> pulumi.Output[Any]:
    """Builds every host; wrong config ends the run with our sentences before any connection.

    The output is there once everything is registered.
    """
    file = f"Pulumi.{pulumi.get_stack()}.yaml"
    try:
        settings = load_settings(stack_config("cutover"), file)
        catalogue = load_catalogue(Path(settings.catalogue))
        active = active_deployments(settings, catalogue, file)
        keys = {
            name: Keys(private_key(name, host, file), proxy_key(name, host, file))
            for name, host in settings.hosts.items()
        }
    except ConfigError as error:
        pulumi.log.error(str(error))
        sys.exit(ALREADY_TOLD)
    files = {
        name: render_files(deployment, settings.secrets) for name, deployment in catalogue.items()
    }
    serves = {host: files[deployment.name] for host, deployment in active.items()}
    units = [deployment.unit for deployment in catalogue.values()]
    answers = ask(settings, serves, units, keys) if settings.facts else None
    for deployment in catalogue.values():
        for sentence in advice(deployment):
            pulumi.log.warn(sentence)
    return build(settings, files, serves, keys, answers)


def build(
    settings: Settings,
    catalogue: Mapping[str, Rendered],
    active: Mapping[str, Rendered],
    keys: Mapping[str, Keys],
    answers: Facts | None,
) -> pulumi.Output[Any]:
    """Registers the hosts, and exports what each of them serves; the output is their receipts."""
    # Imported late: the provider's SDK takes a while, and bad config shall be told at once.
    from components.gpu_host import GpuHost, GpuHostArgs

    found = answers.answers() if answers else {}
    stop_at_strangers(found)
    moment = int(time.time())
    before: Step | None = None
    done: dict[str, pulumi.Output[Any]] = {}
    for name, host in settings.hosts.items():
        facts = found.get(name, NO_FACTS)
        args = GpuHostArgs(host, keys[name], catalogue, active[name], facts, moment)
        gpu_host = GpuHost(name, args, before)
        # One host after the other: a host that fails stops those that come after it.
        before = None if settings.parallel else gpu_host.serve
        pulumi.export(name, gpu_host.result)
        done[name] = gpu_host.last.receipt
    fail_for_silent(found, done)
    return pulumi.Output.all(*done.values())


def ask(
    settings: Settings,
    active: Mapping[str, Rendered],
    units: Sequence[str],
    keys: Mapping[str, Keys],
) -> Facts:
    """Asks the hosts in the background: the provider's SDK takes as long to import."""
    questions = {}
    for name, host in settings.hosts.items():
        if not host.gone:
            files = active[name]
            order = order_for(name, host, files.deployment, files.unit_text).to_json()
            texts = (files.unit_text, files.environment_text)
            others = tuple(unit for unit in units if unit != files.deployment.unit)
            questions[name] = Question(host, keys[name], order, *texts, others)
    return Facts(questions)


def stop_at_strangers(found: Mapping[str, Answer]) -> None:
    """Ends the run before the first command where a host shows another key than its pin."""
    file = f"Pulumi.{pulumi.get_stack()}.yaml"
    for name, answer in found.items():
        if isinstance(answer, NoFacts) and answer.stranger:
            pulumi.log.error(
                f"{file}: hosts.{name}.{answer.stranger}: {answer.address} shows another key: if "
                "the host was installed anew, compare its key there and pin that one; if not, "
                "somebody may be in between, and nothing was sent to it"
            )
            sys.exit(ALREADY_TOLD)


def fail_for_silent(found: Mapping[str, Answer], done: Mapping[str, pulumi.Output[Any]]) -> None:
    """Makes an `up` fail for hosts that did not answer, once everything is done on the others.

    A host with nothing to change would be green otherwise, though nobody knows what it serves.
    """
    silent = {
        name: each.sentence
        for name, each in found.items()
        if isinstance(each, NoFacts) and each.reason
    }
    if not silent or pulumi.runtime.is_dry_run():
        return

    def fail(_: object) -> None:
        raise pulumi.RunError("\n".join(f"{name}: {text}" for name, text in silent.items()))

    pulumi.Output.all(*(each for name, each in done.items() if name not in silent)).apply(fail)


def stack_config(namespace: str) -> dict[str, Any]:
    """Every config value of a namespace, objects decoded, secrets in clear."""
    found: dict[str, Any] = {**get_config_env(), **CONFIG.get()}
    prefix = f"{namespace}:"
    return {
        key.removeprefix(prefix): _decoded(value)
        for key, value in found.items()
        if key.startswith(prefix)
    }


def _decoded(value: str) -> Any:
    """Objects and lists come as JSON; any other value is the text that the file holds."""
    return json.loads(value) if value.startswith(("{", "[")) else value
