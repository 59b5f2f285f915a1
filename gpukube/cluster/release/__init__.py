"""A cluster's releases: what they must be, and how to install, adopt, change, and uninstall them."""
