"""What Pulumi builds: the graph of a GPU host and of each deployment on it."""
