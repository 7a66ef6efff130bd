"""A stand-in for the pulumi-command plugin, where the real one cannot be downloaded."""
