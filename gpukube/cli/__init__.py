"""The command line: signatures and help. Bodies are thin and import what they need when they run."""
