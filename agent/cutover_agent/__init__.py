"""The agent: the program that runs on a GPU host and carries out one order there."""
