"""Whether workloads fit the pools: predicates of the scheduler, packing, and the one change that would make it so."""
