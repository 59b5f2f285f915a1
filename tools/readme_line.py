"""Print one of the README's command lines by the marker above its block: `python tools/readme_line.py tests`."""

from __future__ import annotations

import re
import sys
from pathlib import Path

README = Path(__file__).parent.parent / "README.md"


def readme_line(marker: str) -> str:
    """Return the shell block that follows `<!-- run: marker -->`.

    Raises:
        SystemExit: There is no such block.
    """
    found = re.search(rf"<!-- run: {re.escape(marker)} -->\n```sh\n(.*?)```", README.read_text(), re.DOTALL)
    if found is None:
        raise SystemExit(f'README.md has no block marked "run: {marker}"')
    return found.group(1).strip()


if __name__ == "__main__":
    print(readme_line(sys.argv[1]))
