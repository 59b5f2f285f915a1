"""The one release of a cluster: what it must be, how it is brought there, taken over and removed."""
