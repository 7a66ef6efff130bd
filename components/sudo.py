"""What the first command on a host asks of sudo."""

ASK_SUDO = """\
sudo -n true || { echo 'sudo does not let this user in without a password or a terminal: allow it \
in /etc/sudoers.d (NOPASSWD, no requiretty), or log in as root; nothing was touched' >&2; exit 77; }
"""
"""A sudo that wants a password is told before anything is touched."""
