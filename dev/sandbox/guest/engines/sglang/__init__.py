"""A practice engine under the real one's name."""
