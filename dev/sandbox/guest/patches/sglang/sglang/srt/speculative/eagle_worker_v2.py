"""Stands for the worker in which an attribute is set before it is used."""

PATCHED = True
