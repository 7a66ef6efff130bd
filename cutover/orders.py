"""What the program tells a host's agent, in the wire format that both know."""

from __future__ import annotations

from ipaddress import IPv4Address, IPv6Address, ip_address

from cutover.deployment import Deployment, Listen
from cutover.settings import Host
from cutover.warm import warm_for
from cutover_agent.order import (
    Deadlines,
    Declared,
    Edit,
    Files,
    Hooks,
    Order,
    Probe,
    Requirement,
    text_digest,
)

API_KEY = {"vllm": "VLLM_API_KEY", "sglang": "SGLANG_API_KEY"}
"""Variable from which an engine takes its API key, where it reads one."""


def order_for(host_name: str, host: Host, deployment: Deployment, unit_text: str) -> Order:
    """What `host` shall serve; `unit_text` is the rendered unit."""
    return Order(
        host=host_name,
        host_gpus=host.gpus,
        deployment=deployment.name,
        unit=deployment.unit,
        unit_digest=text_digest(unit_text),
        gpus=deployment.gpu_indices,
        gpu_uuids=deployment.gpu_uuids,
        checkpoint=deployment.checkpoint,
        probe=probe_for(deployment),
        policy=host.policy,
        files=files_for(deployment),
        environment=dict(deployment.env),
        strict_env=deployment.strict_env,
        idle_mib=host.idle_mib,
        bad_remap=host.bad_remap,
        also_end=tuple(host.also_end),
        companions=dict(host.companions),
        deadlines=Deadlines(
            stop=deployment.stop_seconds,
            release=host.deadlines.release,
            gate=host.deadlines.gate,
            load=deployment.timeouts.load,
            smoke=deployment.timeouts.smoke,
            drain=deployment.wait_seconds,
            settle=host.deadlines.settle,
            kill=host.deadlines.kill,
        ),
        hooks=hooks_for(host),
        accept_no_rollback=host.accept_no_rollback,
        warm=warm_for(deployment, host.warm_mib_per_second),
    )


def hooks_for(host: Host) -> Hooks:
    """The host's commands, in the wire format."""
    said = host.hooks
    return Hooks(
        tuple(said.before_stop or ()),
        tuple(said.after_commit or ()),
        tuple(said.after_rollback or ()),
        said.seconds,
    )


def files_for(deployment: Deployment) -> Files:
    """What has to be on the host for this deployment, besides its checkpoint."""
    edits = deployment.checkpoint_edits
    return Files(
        draft=deployment.draft_checkpoint or "",
        tokenizer=deployment.tokenizer or "",
        hf_config=deployment.hf_config or "",
        mount=deployment.mount or "",
        user=deployment.user,
        any_format=deployment.engine == "command",
        view=deployment.model_path if edits else "",
        edits=tuple(Edit(name, tuple(edit.remove)) for name, edit in edits.items()),
        requires=tuple(
            Requirement(one.path, one.sha256, tuple(one.sets)) for one in deployment.requires
        ),
    )


def declared_for(deployment: Deployment, active: Deployment, unit_text: str) -> Declared:
    """What one deployment's service shall be on a host that serves `active`."""
    return Declared(
        deployment=deployment.name,
        unit=deployment.unit,
        unit_digest=text_digest(unit_text),
        enabled=deployment.name == active.name,
        serves=active.name,
    )


def probe_for(deployment: Deployment) -> Probe:
    """How the host itself asks the server."""
    key = API_KEY.get(deployment.engine, "")
    return Probe(
        url=local_url(deployment.listen),
        model=deployment.served_names[0],
        prompt=deployment.smoke.prompt,
        expect=deployment.smoke.expect,
        max_tokens=deployment.smoke.max_tokens,
        requests=deployment.smoke.count,
        concurrency=deployment.smoke.concurrency,
        min_tokens_per_second=float(deployment.smoke.min_tokens_per_second),
        health=deployment.ready.health,
        api_key_env=key if key in deployment.secrets else "",
    )


def local_url(listen: Listen) -> str:
    """Where the server answers on its own host: every-address becomes loopback, family kept."""
    address = _address(listen.host)
    if address is not None and address.is_unspecified:
        return _url("127.0.0.1" if address.version == 4 else "::1", listen.port)
    return _url(listen.host, listen.port)


def public_url(host: Host, listen: Listen) -> str:
    """Where others reach the server: the host's address, unless it binds a certain one."""
    address = _address(listen.host)
    everywhere = address is not None and address.is_unspecified
    return _url(host.address if everywhere else listen.host, listen.port)


def _url(host: str, port: int) -> str:
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def _address(host: str) -> IPv4Address | IPv6Address | None:
    try:
        return ip_address(host)
    except ValueError:
        return None
