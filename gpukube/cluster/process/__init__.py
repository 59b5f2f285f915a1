"""Child processes that end with this process, and their working directories."""
