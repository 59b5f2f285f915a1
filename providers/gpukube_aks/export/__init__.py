"""How pools of AKS are written for other tools."""
