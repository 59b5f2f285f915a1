"""What GKE refuses of a node pool, one check per rule.

A sentence that was seen is cited; every other one is the sandbox's own, in the service's usual form (the real one is
unconfirmed), its code is not. Where no public source has a rule, there is none.
"""
