"""Whether settings and catalogue fit together."""

from __future__ import annotations

from collections.abc import Mapping

from cutover.deployment import Deployment
from cutover.errors import ConfigError, did_you_mean
from cutover.settings import Settings


def active_deployment(
    settings: Settings, catalogue: Mapping[str, Deployment], file: str
) -> Deployment:
    """The deployment that the hosts shall serve; ConfigError tells what does not fit."""
    active = catalogue.get(settings.active)
    if active is None:
        names = ", ".join(catalogue)
        hint = did_you_mean(settings.active, catalogue)
        hint = f"{hint} There is {names}" if hint.startswith("did") else hint
        raise ConfigError(f"{file}: active: no deployment is named {settings.active}: {hint}")
    sentences = _missing_secrets(settings, catalogue, file)
    highest = max(active.gpus)
    sentences += [
        f"{file}: hosts.{name}.gpus: {host.gpus} are too few for {active.name}, "
        f"which fills GPU {highest}: choose another deployment or host"
        for name, host in settings.hosts.items()
        if highest >= host.gpus
    ]
    if sentences:
        raise ConfigError(*sentences)
    return active


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
