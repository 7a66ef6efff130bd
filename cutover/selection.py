"""Whether settings and catalogue fit together."""

from __future__ import annotations

from collections.abc import Mapping

from cutover.deployment import Deployment
from cutover.errors import ConfigError, did_you_mean
from cutover.settings import Settings


def active_deployments(
    settings: Settings, catalogue: Mapping[str, Deployment], file: str
) -> dict[str, Deployment]:
    """The deployment that each host shall serve; ConfigError tells what does not fit."""
    active = _named(settings.active, catalogue, f"{file}: active")
    chosen = {
        name: _named(host.active, catalogue, f"{file}: hosts.{name}.active")
        if host.active
        else active
        for name, host in settings.hosts.items()
    }
    sentences = _missing_secrets(settings, catalogue, file)
    sentences += [
        f"{file}: hosts.{name}.gpus: {settings.hosts[name].gpus} are too few for "
        f"{deployment.name}, which fills GPU {max(deployment.gpus)}: "
        "choose another deployment or host"
        for name, deployment in chosen.items()
        if max(deployment.gpus) >= settings.hosts[name].gpus
    ]
    if sentences:
        raise ConfigError(*sentences)
    return chosen


def _named(name: str, catalogue: Mapping[str, Deployment], where: str) -> Deployment:
    deployment = catalogue.get(name)
    if deployment is None:
        hint = did_you_mean(name, catalogue)
        hint = f"{hint} There is {', '.join(catalogue)}" if hint.startswith("did") else hint
        raise ConfigError(f"{where}: no deployment is named {name}: {hint}")
    return deployment


def _missing_secrets(
    settings: Settings, catalogue: Mapping[str, Deployment], file: str
) -> list[str]:
    """Of every deployment, since each one's environment is put on every host."""
    return [
        f"{file}: secrets.{variable}: is missing, and {name} needs it: run "
        f"`pulumi config set --secret --path secrets.{variable}`"
        for name, deployment in catalogue.items()
        for variable in deployment.secrets
        if variable not in settings.secrets
    ]
