"""Which services run, from what systemd says of all that it has loaded."""

from __future__ import annotations

import pytest

from cutover_agent.services import parse_services, worth_asking
from cutover_agent.survey import running_units
from tests.unit.agent.samples import landscape

SHOWN = """\
Id=vllm-a.service
MainPID=812
ActiveState={active}
UnitFileState=enabled
Restart=always
User=operator
ExecStart={{ path=/opt/vllm/bin/python ; argv[]=/opt/vllm/bin/python -m vllm ; pid=0 }}
Job={job}

Id=cron.service
MainPID=0
ActiveState=inactive
"""


@pytest.mark.parametrize(
    ("active", "job", "runs"),
    [
        ("active", "", True),
        ("activating", 0, True),
        ("deactivating", 0, True),
        ("inactive", "", False),
        ("inactive", 0, False),
        ("failed", 0, False),
        ("inactive", 731, True),
    ],
)
def test_a_unit_that_may_hold_a_gpu_or_is_about_to_counts_as_running(
    active: str, job: object, runs: bool
) -> None:
    services = parse_services(SHOWN.format(active=active, job=job))
    seen = landscape(services=tuple(services.values()))
    ours = frozenset({"vllm-a.service", "cron.service", "vllm-never-loaded.service"})
    assert running_units(ours, seen) == ({"vllm-a.service"} if runs else set())
    assert services["vllm-a.service"].command == ("/opt/vllm/bin/python", "-m", "vllm")
    assert services["vllm-a.service"].user == "operator"


LISTED = """\
vllm-a.service          loaded    active     running      vLLM
vllm-b.service          loaded    inactive   dead         vLLM, starts at boot
gone.service            not-found active     running      gone.service
auditd.service          not-found inactive   dead         auditd.service
getty.service           masked    inactive   dead         getty.service
systemd-logind.service  loaded    active     running      User Login Management
systemd-fsck.service    loaded    inactive   dead         File System Check
systemd-nspawn@a.service loaded   active     running      Container a
broken.service          loaded    failed     failed       broken

"""


def test_only_services_that_do_nothing_and_cannot_serve_a_model_are_not_asked_about() -> None:
    names = ["vllm-a.service", "vllm-b.service", "gone.service"]
    names += ["systemd-logind.service", "systemd-nspawn@a.service", "broken.service"]
    assert worth_asking(LISTED) == names
