"""Stands for the sparse MLA attention in Triton that was written for SM120."""

PATCHED = True
