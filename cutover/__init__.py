"""Settings, catalogue and rendering of the program: plain Python that knows nothing of Pulumi."""
