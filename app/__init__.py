"""What people use: the command line, and later the terminal screens."""
