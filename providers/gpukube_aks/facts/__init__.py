"""What is known of AKS: places, images, machines, the meaning of its errors. Pure."""
