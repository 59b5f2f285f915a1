"""Checks whether workloads fit the pools: scheduler predicates, packing, and the change that would make them fit."""
