"""How commands become root's on a host, and what the first of them asks of sudo."""

AS_ROOT = "$(test $(id -u) = 0 || echo sudo -n)"
"""Nothing for root, and sudo for everybody else, found on the host: the texts in Pulumi's state so
stay right when another user logs in, also where a text is kept because the host cannot be asked.
"""

ASK_SUDO = """\
test $(id -u) = 0 || sudo -n true || { echo 'sudo does not let this user in without a password or \
a terminal: allow it in /etc/sudoers.d (NOPASSWD, no requiretty), or log in as root; nothing was \
touched' >&2; exit 77; }
"""
"""A sudo that wants a password is told before anything is touched."""
