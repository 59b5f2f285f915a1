"""The emulated AWS over HTTP: routes, signatures, protocols."""
