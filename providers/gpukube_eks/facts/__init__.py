"""Facts about EKS: places, images, machines, the meaning of its errors. Pure."""
