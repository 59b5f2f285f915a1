"""What somebody wants to run on a pool -> manifests, with comments where clouds and sharings differ. Pure."""
