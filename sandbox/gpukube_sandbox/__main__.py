"""`python -m gpukube_sandbox serve`: the background process.

In scope: its command line. Out of scope: the user's command (`gpukube sandbox up`).
"""

from __future__ import annotations

import argparse
import logging
import sys
from pathlib import Path

from gpukube_sandbox.server import serve


def main() -> int:
    """Parse the command line and serve."""
    parser = argparse.ArgumentParser(prog="python -m gpukube_sandbox")
    command = parser.add_subparsers(required=True).add_parser("serve", help="serve until stopped")
    command.add_argument("--state-dir", type=Path, required=True)
    command.add_argument("--speed", type=float, default=1.0)
    command.add_argument("--idle-timeout", type=float, default=0.0)
    options = parser.parse_args()
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    return serve(options.state_dir, options.speed, options.idle_timeout)


if __name__ == "__main__":
    sys.exit(main())
