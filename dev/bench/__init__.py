"""Compares the program with what people use today; one comparison a file."""
