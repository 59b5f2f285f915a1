"""Which GPUs exist, who holds them, and what they cost: the world of `pool map` and `pool usage`."""
