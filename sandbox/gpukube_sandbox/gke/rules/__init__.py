"""GKE's checks of a node pool, one function per rule.

Messages that were seen have a source; all others are the sandbox's own, in the service's usual form (the real one is
unconfirmed), but their codes are the service's. A rule without a public source is not included.
"""
