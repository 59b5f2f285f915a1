"""The cluster autoscaler: adds nodes for unschedulable pods, and removes unneeded nodes."""
