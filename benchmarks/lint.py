"""Measure `gpukube workload lint`: seconds and memory for manifests of many kinds, as users run it."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
DOCUMENTS = 2_000
RUNS = 3
POD = """\
      nodeSelector: {{eks.amazonaws.com/nodegroup: pool{number}}}
      tolerations:
        - {{key: nvidia.com/gpu, operator: Exists, effect: NoSchedule}}
      containers:
        - name: main
          image: registry.example.com/team/app:{number}
          args: ["--port", "8080"]
          env:
            - {{name: MODEL, value: "model-{number}"}}
            - {{name: LEVEL, value: info}}
          ports:
            - {{containerPort: 8080}}
          volumeMounts:
            - {{name: data, mountPath: /data}}
          resources:
            requests: {{cpu: "2", memory: 8Gi}}
            limits: {{memory: 8Gi, nvidia.com/gpu: {gpus}}}
      volumes:
        - name: data
          persistentVolumeClaim: {{claimName: data-{number}}}
"""
KINDS = (
    """\
apiVersion: apps/v1
kind: Deployment
metadata:
  name: app{number}
  namespace: team
  labels: {{app: app{number}}}
spec:
  replicas: 2
  selector: {{matchLabels: {{app: app{number}}}}}
  template:
    metadata: {{labels: {{app: app{number}}}}}
    spec:
"""
    + POD,
    """\
apiVersion: batch/v1
kind: Job
metadata: {{name: job{number}, namespace: team}}
spec:
  parallelism: 2
  template:
    spec:
      restartPolicy: Never
"""
    + POD,
    """\
apiVersion: ray.io/v1
kind: RayCluster
metadata: {{name: ray{number}, namespace: team}}
spec:
  rayVersion: "2.58.0"
  enableInTreeAutoscaling: true
  headGroupSpec:
    rayStartParams: {{num-cpus: "0"}}
    template:
      spec:
        containers:
          - name: ray-head
            image: rayproject/ray:2.58.0-py312
            resources: {{limits: {{cpu: "2", memory: 8Gi}}}}
  workerGroupSpecs:
  - groupName: gpu
    minReplicas: 0
    maxReplicas: 4
    rayStartParams: {{}}
    template:
     spec:
"""
    + POD,
    """\
apiVersion: v1
kind: ConfigMap
metadata: {{name: settings{number}, namespace: team}}
data:
  settings.yaml: |
    a: {number}
    b: [1, 2, 3]
  level: info
""",
)


def manifests(count: int) -> str:
    """Write documents of all kinds in turn; one of ten pods has a mistake."""
    return "---\n".join(
        KINDS[number % len(KINDS)].format(number=number, gpus="0.5" if number % 10 == 0 else "1")
        for number in range(count)
    )


def figures(count: int, words: tuple[str, ...] = ()) -> tuple[float, float]:
    """Return the seconds of the processor that the command takes, the least of some runs, and its most memory in MB."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join((str(ROOT), str(ROOT / "providers")))}
    seconds, megabytes = [], 0.0
    with tempfile.NamedTemporaryFile("w", suffix=".yaml") as file:
        file.write(manifests(count))
        file.flush()
        for _ in range(RUNS):
            ours = subprocess.Popen(
                [sys.executable, "-m", "gpukube", "workload", "lint", file.name, *words],
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                env=environment,
            )
            _, _, used = os.wait4(ours.pid, 0)
            seconds.append(used.ru_utime + used.ru_stime)
            megabytes = max(megabytes, used.ru_maxrss / 1024)
    return min(seconds), megabytes


def rows() -> list[tuple[str, str, str]]:
    """Measure what has a goal: what, figure, goal."""
    seconds, megabytes = figures(DOCUMENTS)
    with_spec, _ = figures(DOCUMENTS, ("-f", str(ROOT / "examples" / "three-clouds.yaml")))
    return [
        (f"lint {DOCUMENTS:,} documents", f"{seconds:.2f} s", "<= 5 s"),
        ("workload lint against the pools of a spec", f"{with_spec:.2f} s", "<= 5 s"),
        ("workload lint without a spec, peak memory", f"{megabytes:.0f} MB", "<= 300 MB"),
    ]


def main() -> None:
    """Print the figures with goals."""
    for what, figure, goal in rows():
        print(f"{what:<52} {figure:>10}   goal {goal}")


if __name__ == "__main__":
    main()
