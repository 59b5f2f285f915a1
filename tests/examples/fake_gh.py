"""`gh api` for issues and comments, kept in a file: `fake_gh.py FILE api PATH ...`. Filters are run by the real jq.

A page holds two entries, and the filter is applied to each page, as gh does with --paginate.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

PAGE = 2

Entry = dict[str, Any]


def main(place: str, *words: str) -> int:
    """Answer one request."""
    if not os.environ.get("GH_TOKEN"):
        sys.stderr.write("gh: To use GitHub CLI in a GitHub Actions workflow, set the GH_TOKEN environment variable.\n")
        return 4
    file = Path(place)
    state = json.loads(file.read_text()) if file.exists() else {"issues": [], "comments": []}
    method, path, fields, options = read(list(words))
    url = urlsplit(path)
    found = answer(state, method or ("POST" if fields else "GET"), url.path, fields)
    if "state" in parse_qs(url.query):
        found = [one for one in found if one["state"] == "open"]
    file.write_text(json.dumps(state))
    if "--silent" in options:
        return 0
    pages = [found[at : at + PAGE] for at in range(0, len(found), PAGE)]
    for page in pages if "--paginate" in options else pages[:1]:
        subprocess.run(["jq", "-r", options["--jq"]], input=json.dumps(page), text=True, check=True)
    return 0


def read(words: list[str]) -> tuple[str, str, dict[str, str], dict[str, str]]:
    """Take a command line apart: method, path, fields, other options."""
    assert words.pop(0) == "api"
    method, path, fields, options = "", "", {}, {}
    while words:
        word = words.pop(0)
        if word == "-X":
            method = words.pop(0)
        elif word in ("-f", "-F"):
            name, _, value = words.pop(0).partition("=")
            fields[name] = Path(value[1:]).read_text() if word == "-F" and value.startswith("@") else value
        elif word == "--jq":
            options[word] = words.pop(0)
        elif word in ("--paginate", "--silent"):
            options[word] = ""
        else:
            assert not path, f"gh api takes one path: {path}, {word}"
            path = word
    return method, path, fields, options


def answer(state: dict[str, list[Entry]], method: str, path: str, fields: dict[str, str]) -> list[Entry]:
    """Do what the request asks for."""
    assert len(fields.get("body", "")) <= 65_536, "Body is too long (maximum is 65536 characters)"
    issue, comment = re.search(r"/issues/(\d+)", path), re.search(r"/comments/(\d+)$", path)
    if comment or path.endswith("/comments"):
        found, key = (comment, "id") if comment else (issue, "issue")
        assert found, path
        number = int(found[1])
        mine = [one for one in state["comments"] if one[key] == number]
        new = {"id": 100 + len(state["comments"]), "issue": number, "user": {"type": "Bot"}}
        return change(state["comments"], mine, method, {**new, **fields})
    mine = [one for one in state["issues"] if not issue or one["number"] == int(issue[1])]
    new = {"number": 1 + len(state["issues"]), "state": "open", "pull_request": None, "user": {"type": "Bot"}}
    return change(state["issues"], mine, method, {**new, **fields} if method == "POST" else fields)


def change(every: list[Entry], mine: list[Entry], method: str, entry: Entry) -> list[Entry]:
    """Read, add or change entries; gives those that were read or written."""
    if method == "GET":
        return mine
    if method == "POST":
        every.append(entry)
        return [entry]
    assert method == "PATCH"
    (one,) = mine
    one.update({name: value for name, value in entry.items() if name in ("body", "title", "state", "state_reason")})
    return [one]


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
