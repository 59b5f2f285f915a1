"""How pools of GKE are written for other tools."""
