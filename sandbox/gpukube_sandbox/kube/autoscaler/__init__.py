"""The cluster autoscaler: node groups grow for pods that fit nowhere, and lose nodes that nobody needs."""
