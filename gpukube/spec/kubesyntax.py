"""Kubernetes' syntax of label and taint keys and values.

In scope: the syntax. Out of scope: keys reserved by a cloud or gpukube.

Source: kubernetes.io, concepts/overview/working-with-objects/labels ("Syntax and character set"); taints use the
same rules (core/v1 Taint, validated as qualified name and label value).
"""

from __future__ import annotations

import re
from typing import Final

MOST_NAME: Final = 63
MOST_PREFIX: Final = 253
_NAME: Final = re.compile(r"[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?")
_PREFIX: Final = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
_FORM: Final = 'letters, digits, "-", "_" or ".", starting and ending with a letter or digit'


def explain_key(key: str) -> str:
    """Return the expected syntax of a key ([prefix/]name); "" if it is valid."""
    prefix, slash, name = key.rpartition("/")
    if slash and (len(prefix) > MOST_PREFIX or not _PREFIX.fullmatch(prefix)):
        return f'expected a lower-case DNS name of at most {MOST_PREFIX} characters before the "/"'
    if len(name) > MOST_NAME or not _NAME.fullmatch(name):
        return f"expected 1 to {MOST_NAME} {_FORM}"
    return ""


def explain_value(value: str) -> str:
    """Return the expected syntax of a value; "" if it is valid."""
    if value and (len(value) > MOST_NAME or not _NAME.fullmatch(value)):
        return f"expected nothing, or at most {MOST_NAME} {_FORM}"
    return ""
