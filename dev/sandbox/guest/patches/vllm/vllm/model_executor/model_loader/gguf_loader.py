"""Stands for the loader that is patched on the box: it reads the tensors of GLM-5 from GGUF."""

PATCHED = True
