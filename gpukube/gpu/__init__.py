"""What is known about GPUs and the machines that carry them; pure, without clouds, clocks or network.

Lives here: instance types, GPU models, MIG geometry, sharing, capacity and the device plugin's config file.
Must not live here: what one cloud's API calls these things, and anything with a file position.
"""
