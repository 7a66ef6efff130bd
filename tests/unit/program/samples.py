"""Small legal inputs that a test changes in one place."""

from __future__ import annotations

from typing import Any

from cutover.catalogue import Deployment


def host(**changes: Any) -> dict[str, Any]:
    return {"address": "gpu-box.invalid", "gpus": 8, **changes}


def settings(**changes: Any) -> dict[str, Any]:
    return {"active": "small", "hosts": {"gpu-box": host()}, **changes}


def fields(**changes: Any) -> dict[str, Any]:
    return {
        "description": "A small model",
        "unit": "vllm-small.service",
        "engine": "vllm",
        "python": "/opt/vllm/bin/python3",
        "checkpoint": "/models/small",
        "served_names": ["small"],
        **changes,
    }


def deployment(name: str = "small", **changes: Any) -> Deployment:
    return Deployment.model_validate({"name": name, **fields(**changes)})
