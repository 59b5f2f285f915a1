"""GPU and machine data; pure, without clouds, clocks, or network.

In scope: instance types, GPU models, MIG geometry, sharing, capacity and the device plugin's config file.
Out of scope: what one cloud's API calls these things, and anything with a file position.
"""
