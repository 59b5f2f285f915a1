import pytest

from gpukube.spec.wording import quoted


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("us\u2011east\u20111", '"us<U+2011>east<U+2011>1"'),
        ("a\u00a0b", '"a<U+00A0>b"'),
        ("\u201ca\u201d", '"<U+201C>a<U+201D>"'),
        ("g4dn.\u0445large", '"g4dn.<U+0445>large"'),
        ("café", '"café"'),
    ],
)
def test_quoted_when_a_character_passes_for_another_then_its_number_is_shown(text: str, said: str) -> None:
    assert quoted(text) == said
