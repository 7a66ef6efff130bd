"""All hosts of the stack, from its config and the catalogue."""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pulumi

from components.facts import question
from components.gpu_host import GpuHost, GpuHostArgs
from components.question import Question
from components.step import Step
from cutover.advice import advice
from cutover.catalogue import load_catalogue
from cutover.errors import ConfigError
from cutover.facts import NO_FACTS, Answer, NoFacts
from cutover.host import Keys
from cutover.orders import order_for
from cutover.selection import active_deployments
from cutover.settings import Settings, load_settings, private_key, proxy_key
from cutover.units import Rendered, render_files
from cutover_agent.order import text_digest

ALREADY_TOLD = 32
"""Exit status by which Pulumi's Python host knows that the error is on the screen already."""


@dataclass(frozen=True)
class Plan:
    """What the config wants of every host."""

    settings: Settings
    catalogue: Mapping[str, Rendered]
    """Every deployment, by its name."""
    active: Mapping[str, Rendered]
    """What each host shall serve, by the host's name."""
    keys: Mapping[str, Keys]

    def questions(self) -> dict[str, Question]:
        """What each host that is still there is asked."""
        units = [files.deployment.unit for files in self.catalogue.values()]
        found = {}
        for name, host in self.settings.hosts.items():
            if not host.gone:
                files = self.active[name]
                order = order_for(name, host, files.deployment, files.unit_text).to_json()
                others = [unit for unit in units if unit != files.deployment.unit]
                texts = {
                    "unit_text": files.unit_text,
                    # Without a pin anybody may answer, and a preview must not give secrets away.
                    "env_text": files.environment_text if host.host_key else "",
                    "env_digest": text_digest(files.environment_text),
                }
                found[name] = question(host, self.keys[name], order, texts, others)
        return found


def read(config: Mapping[str, Any]) -> Plan:
    """Reads stack config and catalogue; what is wrong ends the run with our sentences."""
    file = f"Pulumi.{pulumi.get_stack()}.yaml"
    try:
        settings = load_settings(config, file)
        catalogue = load_catalogue(Path(settings.catalogue))
        active = active_deployments(settings, catalogue, file)
        keys = {
            name: Keys(private_key(name, host, file), proxy_key(name, host, file))
            for name, host in settings.hosts.items()
        }
    except ConfigError as error:
        pulumi.log.error(str(error))
        sys.exit(ALREADY_TOLD)
    for deployment in catalogue.values():
        for sentence in advice(deployment):
            pulumi.log.warn(sentence)
    files = {
        name: render_files(deployment, settings.secrets) for name, deployment in catalogue.items()
    }
    return Plan(settings, files, {host: files[each.name] for host, each in active.items()}, keys)


def build(
    plan: Plan, found: Mapping[str, Answer], provider: pulumi.ProviderResource
) -> pulumi.Output[Any]:
    """Registers the hosts, and exports what each of them serves.

    `found` has the hosts' answers. The output is there once everything is registered.
    """
    stop_at_strangers(found)
    moment = int(time.time())
    before: Step | None = None
    done: dict[str, pulumi.Output[Any]] = {}
    for name, host in plan.settings.hosts.items():
        facts = found.get(name, NO_FACTS)
        args = GpuHostArgs(host, plan.keys[name], plan.catalogue, plan.active[name], facts, moment)
        gpu_host = GpuHost(name, args, before, provider)
        # One host after the other: a host that fails stops those that come after it.
        before = None if plan.settings.parallel else gpu_host.serve
        pulumi.export(name, gpu_host.result)
        done[name] = gpu_host.last.receipt
    fail_for_silent(found, done)
    return pulumi.Output.all(*done.values())


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
