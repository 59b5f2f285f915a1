"""What is known of EKS: places, images, machines, the meaning of its errors. Pure."""
