"""What is known of GKE: places, images, machines, the meaning of its errors. Pure."""
