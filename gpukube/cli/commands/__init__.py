"""Signatures and help of the commands. Bodies are imported when a command runs."""
