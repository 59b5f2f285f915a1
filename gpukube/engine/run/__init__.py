"""One run: its clock, calls, sessions, events and report."""
