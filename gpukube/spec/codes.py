"""Every code a diagnostic of the spec can carry, with the sentence the documentation prints.

Lives here: the table, nothing else. Codes are stable: they may be added, never renamed or given a new meaning.
Each has a page under tests/messages that shows it.
"""

from __future__ import annotations

from typing import Final

CODES: Final[dict[str, str]] = {
    # Files and streams.
    "file-missing": "A file or directory given with -f does not exist.",
    "file-unreadable": "A file or directory given with -f cannot be read.",
    "directory-empty": "A directory given with -f holds no *.yaml or *.yml file.",
    "pattern-empty": "A pattern given with -f matches no file.",
    "document-empty": "A file given with -f holds no YAML document with content.",
    "encoding": "The text is not UTF-8.",
    # YAML.
    "yaml-syntax": "The text is not YAML.",
    "yaml-limit": "The text is too large, nested too deep, or its documents, aliases or digits are too many.",
    "yaml-ambiguous": "An unquoted value means one thing in YAML 1.2 and another in YAML 1.1.",
    "yaml-duplicate-key": "A key is written twice in one mapping.",
    "yaml-key": "A key is not a string.",
    "yaml-tag": "YAML tags (!name) are not supported.",
    "yaml-merge-key": "The merge key << is not supported.",
    "yaml-alias": "An alias has no anchor before it, or is inside its own anchor.",
    # Substitution.
    "env-missing": "A variable written as ${NAME}, without a default, is not in the environment.",
    "env-syntax": "A ${ is not followed by a variable name, an optional :- with a default, and }.",
    "set-syntax": "A --set argument is not path=value.",
    "set-path": "A --set path does not lead to a field.",
    # The shape of the spec.
    "unknown-key": "A mapping has a key that gpukube does not know.",
    "missing-key": "A required key is missing.",
    "empty-value": "A key has no value, or an empty one where a value is needed.",
    "type": "A value has the wrong type.",
    "choice": "A value is not one of the choices of its key.",
    "range": "A number is too small or too large.",
    "format": "A string does not have the required format.",
    # Rules across fields that hold on every cloud.
    "unknown-cluster": "A pool names a cluster that is not under clusters.",
    "duplicate-item": "A list has the same item twice.",
    "duplicate-pool": "Two pools would have one name on one cluster.",
    "replacement-name": "A pool has the name of another pool's replacement.",
    "no-instance-type": "A pool has neither gpu nor instanceType for one of its clusters.",
    "nodes-choice": "A pool has both nodes.count and nodes.autoscaling, or neither.",
    "autoscaling-range": "The autoscaling numbers contradict each other.",
    "zone-scope": "nodes.autoscaling.scope is zone for a pool without zones.",
    "reserved-choice": "capacity.reserved does not have exactly one source of machines for each cloud of the pool.",
    "upgrade-range": "upgrade cannot replace a node: maxSurge and maxUnavailable are both 0.",
    "mig-choice": "sharing.mig has both profile and layout, or neither, or a strategy that does not fit the layout.",
    "max-price": "capacity.maxPrice is given for a pool that is not spot.",
    "replicas-many": "sharing.timeSlicing.replicas is higher than any GPU is known to serve.",
    "version-unlikely": "No cloud has this kubernetesVersion.",
    "other-cloud": "A pool has settings for a cloud that it is not on.",
    "sharing-choice": "A pool has both sharing.timeSlicing and sharing.mps.",
    "label-syntax": "Kubernetes does not accept a label key or value.",
    "taint-syntax": "Kubernetes does not accept a taint key or value.",
    "written-label": "NVIDIA's components write this label on the nodes.",
    "duplicate-taint": "Two taints of a pool have the same key and effect.",
    "reserved-key": "gpukube sets this label or taint on the pool, so the spec cannot have it.",
    "owner-conflict": "The owners of driver and device plugin contradict each other or the sharing.",
}
