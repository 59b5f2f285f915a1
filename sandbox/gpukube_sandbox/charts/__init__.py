"""Sources of the stand-in charts, as package data; `gpukube_sandbox.kube.repository` packs and serves them."""
