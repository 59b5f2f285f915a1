"""What the tests of gpukube (tests/) and of its sandbox (sandbox/sandbox_tests/) have in common."""

from __future__ import annotations

pytest_plugins = ["sandbox_tests.plugin"]
