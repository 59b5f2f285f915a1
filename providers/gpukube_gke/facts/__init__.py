"""GKE data: places, images, machines, and the meaning of its errors. Pure."""
