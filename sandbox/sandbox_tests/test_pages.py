"""Pages and their tokens, which say nothing and lead nowhere but to the next page of their own list."""

from __future__ import annotations

import pytest

from gpukube_sandbox.pages import WrongToken, cut


def test_pages_when_followed_then_the_whole_list_by_tokens_that_are_no_numbers() -> None:
    found, token = list(range(23)), ""
    pages: list[int] = []
    while True:
        page, token = cut("nodegroups", found, token, 5)
        pages += page
        if not token:
            break
        assert not token.isdigit()
    assert pages == found
    assert cut("nodegroups", [], "", 5) == ([], "")


def test_token_when_it_is_of_another_list_or_made_up_then_refused() -> None:
    _, token = cut("nodegroups", range(23), "", 5)
    for wrong in ("5", "abc", "é", token[:-2], token[:-2] + "AA", token.upper()):
        with pytest.raises(WrongToken):
            cut("nodegroups", range(23), wrong, 5)
    with pytest.raises(WrongToken):
        cut("updateIds", range(23), token, 5)
