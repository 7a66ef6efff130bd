"""Sets up what `make` needs: Debian packages, Python, Pulumi and its command plugin.

Standard library only, for the python3 of the machine (3.9 or newer). A second run does nothing.
"""
