"""Run by every Python of this environment: each spawned worker gets the same NCCL settings."""

import os

os.environ.setdefault("NCCL_PROTO", "LL")
os.environ.setdefault("NCCL_ALGO", "Ring")
