"""Addresses are shown without any secret in them, however they are spelled and whoever repeats them."""

from __future__ import annotations

from urllib.parse import quote, unquote

import pytest

from gpukube.masking import has_secret, shown_address, shown_words, without_secrets

SECRET = "CANARYs3cret"
SPELLINGS = {
    "a password": f"https://ann:{SECRET}@host/charts",
    "a token as user": f"https://{SECRET}@host/charts",
    "a token as password": f"https://:{SECRET}@host/charts",
    "an upper case scheme": f"HTTPS://ann:{SECRET}@host/charts",
    "a registry": f"oci://ann:{SECRET}@host/charts/plugin",
    "a registry in upper case": f"OCI://ann:{SECRET}@host/charts/plugin",
    "another scheme": f"ftp://ann:{SECRET}@host/charts",
    "a scheme with a plus": f"git+https://ann:{SECRET}@host/charts",
    "a slash in the password": f"http://ann:p%40x/{SECRET}@host/charts",
    "a slash in the password, secret first": f"http://ann:{SECRET}/rest@host/charts",
    "an at in the password": f"http://ann:{SECRET}@{SECRET}@host/charts",
    "a question mark in the password": f"http://ann:{SECRET}?{SECRET}@host/charts",
    "a hash in the password": f"http://ann:a#{SECRET}@host/charts",
    "a colon in the password": f"http://ann:a:{SECRET}@host/charts",
    "an encoded password": f"http://ann:{quote(SECRET + '/@', safe='')}@host/charts",
    "a blank in the password": f"http://ann:my {SECRET}@host/charts",
    "a query": f"https://host/charts?token={SECRET}",
    "a query with an at": f"https://host/charts?token={SECRET}@{SECRET}",
    "a query of two": f"https://host/charts?a=b&token={SECRET}",
    "a fragment": f"https://host/charts#{SECRET}",
    "a query before the path": f"https://host?{SECRET}/charts",
    "a query of a registry": f"oci://host/charts/plugin?token={SECRET}",
    "one slash": f"https:/ann:{SECRET}@host/charts",
    "no slash": f"https:ann:{SECRET}@host/charts",
    "no scheme": f"ann:{SECRET}@host/charts",
    "backslashes": f"https:\\\\ann:{SECRET}@host/charts",
    "a blank before it": f" https://ann:{SECRET}@host/charts",
    "a port": f"https://ann:{SECRET}@host:8443/charts",
    "a digest behind": f"oci://{SECRET}@host/plugin@sha256:{'0' * 64}",
}


@pytest.mark.parametrize("case", SPELLINGS)
def test_address_when_a_secret_is_in_it_then_neither_shown_nor_left_in_what_repeats_it(case: str) -> None:
    address = SPELLINGS[case]
    assert has_secret(address)
    assert SECRET not in shown_address(address)
    assert "host" in shown_address(address) or shown_address(address).endswith("://***")
    said = (
        f"failed to fetch {address}/index.yaml : 500",
        f'parse "{unquote(address)}": invalid port ":p%40{SECRET}" after host',
        f"looks like {quote(address)}, url.URL{{User:{SECRET}, Host: host}}",
    )
    assert not [text for text in said if SECRET in without_secrets(text, address)]
    if "://" in address and not address.startswith(" "):
        assert SECRET not in " ".join(shown_words(["gpukube", "--chart", address]))


@pytest.mark.parametrize(
    "address",
    [
        *(
            "",
            "https://host/charts",
            "http://[::1]:8080/charts",
            "oci://host:5000/charts/plugin",
            "./charts/plugin.tgz",
        ),
        f"oci://host/plugin@sha256:{'0' * 64}",
    ],
)
def test_address_when_no_secret_is_in_it_then_shown_as_it_is(address: str) -> None:
    assert not has_secret(address)
    assert shown_address(address) == address


def test_text_when_only_places_are_in_it_then_kept() -> None:
    said = 'Get "https://10.0.0.1:6443/version": dial tcp: mail ann@example.com about 50% of #3'
    assert without_secrets(said, "https://host/charts") == said


def test_words_when_an_option_has_an_address_then_masked_there_alone() -> None:
    words = ["gpukube", "-f", "a@b.yaml", f"--chart=HTTP://ann:{SECRET}@host/x", "--cluster", "train?"]
    assert shown_words(words) == ["gpukube", "-f", "a@b.yaml", "--chart=HTTP://***@host/x", "--cluster", "train?"]
