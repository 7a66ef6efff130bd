"""The versions and packages that the tool chain stands on, each named once.

The versions of what is built from Go modules stand in `go/*/go.mod`, their digests in the
`go.sum` beside it; those of the Python packages in `requirements.txt`.
"""

from __future__ import annotations

# The version of the SDK in requirements.txt: an older CLI beside a newer SDK is not tested.
OLDEST_PULUMI = (3, 272, 0)

PLUGIN_VERSION = "1.2.1"

PYTHON = ">=3.11,<3.15"

# Debian package: the command or file that shows that it is there.
SYSTEM_PACKAGES = {
    "ca-certificates": "/etc/ssl/certs/ca-certificates.crt",
    "debian-archive-keyring": "/usr/share/keyrings/debian-archive-keyring.gpg",
    "git": "git",
    "iproute2": "ip",
    "mmdebstrap": "mmdebstrap",
    "openssh-client": "ssh",
    "systemd-container": "systemd-nspawn",
}
