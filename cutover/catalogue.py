"""The catalogue: every deployment there is, one YAML file each."""

from __future__ import annotations

from pathlib import Path

from pydantic import ValidationError

from cutover.deployment import Deployment
from cutover.errors import ConfigError, config_error
from cutover.fields import legal_name
from cutover.yaml_file import read_mapping

__all__ = ["Deployment", "load_catalogue", "load_deployment"]


def load_catalogue(folder: Path) -> dict[str, Deployment]:
    """All deployments by name, in order of names; ConfigError tells what is wrong in any file."""
    if not folder.is_dir():
        raise ConfigError(f"{folder.name}: no such folder: set catalogue to the one that has them")
    found: dict[str, Deployment] = {}
    sentences: list[str] = []
    for path in sorted(folder.iterdir()):
        if path.name.startswith(".") or path.suffix not in (".yaml", ".yml"):
            continue
        try:
            found[path.stem] = load_deployment(path)
        except ConfigError as error:
            sentences += error.sentences
    sentences += _shared_units(found, folder.name)
    if sentences:
        raise ConfigError(*sentences)
    if not found:
        raise ConfigError(f"{folder.name}: holds no deployment: add a file such as model.yaml")
    return found


def load_deployment(path: Path) -> Deployment:
    """The deployment in one file, named by the file's stem."""
    shown = f"{path.parent.name}/{path.name}"
    if path.suffix != ".yaml":
        raise ConfigError(f"{shown}: is left out by its name: rename it to {path.stem}.yaml")
    try:
        legal_name(path.stem)
    except ValueError as error:
        raise ConfigError(f"{shown}: its name {error}") from None
    fields = read_mapping(path, shown)
    if "name" in fields:
        raise ConfigError(f"{shown}: name: is the file's own name: remove it")
    try:
        return Deployment.model_validate({"name": path.stem, **fields})
    except ValidationError as error:
        raise config_error(error, Deployment, shown) from None


def _shared_units(found: dict[str, Deployment], folder: str) -> list[str]:
    first: dict[str, str] = {}
    sentences = []
    for name, deployment in found.items():
        other = first.setdefault(deployment.unit, name)
        if other != name:
            sentences.append(
                f"{folder}/{name}.yaml: unit: {deployment.unit} is the unit of "
                f"{folder}/{other}.yaml too: give each its own"
            )
    return sentences
