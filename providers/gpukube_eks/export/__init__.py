"""How pools of EKS are written for other tools."""
