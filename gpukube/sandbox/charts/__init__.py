"""Sources of the stand-in charts, as package data; `gpukube.sandbox.kube.repository` packs and serves them."""
