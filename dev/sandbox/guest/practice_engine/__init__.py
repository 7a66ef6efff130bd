"""A small engine that behaves, and misbehaves, as vLLM and SGLang do."""
