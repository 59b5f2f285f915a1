"""A cluster's one release: what it must be, and how to install, adopt, change, and uninstall it."""
