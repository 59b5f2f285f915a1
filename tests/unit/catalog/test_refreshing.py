"""A refresh: what is asked, what becomes of answers and failures."""

from __future__ import annotations

from dataclasses import replace

import pytest

from gpukube.catalog import refreshing
from gpukube.catalog.refreshing import (
    Outcome,
    choose_inquiries,
    joined,
    refresh,
    refresh_document,
    refresh_exit_code,
)
from gpukube.catalog.seam import catalogs
from gpukube.core.cloud_catalog import Account, CloudCatalog, Findings, Inquiry
from gpukube.core.values import Settings
from gpukube.errors import AccessError, CloudError, ExitCode, SpecError
from gpukube.gpu.machines import catalog_date
from gpukube.gpu.refreshed import Offer, Stock

NOW = "2026-12-24T08:00:00Z"
SETTINGS = Settings()
P4D = Offer("p4d.24xlarge", "A100-40GB", 8, price_usd_h=20.0, spot_usd_h=9.0)
OLD = Stock("eks", "us-east-1", "2026-12-01T00:00:00Z", (replace(P4D, price_usd_h=21.0, price_date="2026-12-01"),))


def asked(*providers: str, regions: tuple[str, ...] = ()) -> list[tuple[str, str]]:
    return [(i.provider, i.region) for i in choose_inquiries(providers, regions, Account(), SETTINGS)]


def test_inquiries_when_nothing_is_named_then_the_home_of_every_cloud() -> None:
    assert asked() == [("aks", "eastus"), ("eks", "us-east-1"), ("gke", "us-central1")]


@pytest.mark.parametrize(
    ("providers", "regions", "expected"),
    [
        (("eks",), (), [("eks", "us-east-1")]),
        ((), ("eu-west-1",), [("eks", "eu-west-1")]),
        ((), ("westeurope", "eu-west-1", "eu-west-1"), [("aks", "westeurope"), ("eks", "eu-west-1")]),
        (("gke",), ("europe-west4", "us-east4"), [("gke", "europe-west4"), ("gke", "us-east4")]),
    ],
)
def test_inquiries_when_regions_are_named_then_those_of_the_clouds_they_belong_to(
    providers: tuple[str, ...], regions: tuple[str, ...], expected: list[tuple[str, str]]
) -> None:
    assert asked(*providers, regions=regions) == expected


@pytest.mark.parametrize(
    ("providers", "regions", "code", "said"),
    [
        (("eks",), ("eastus",), "region", '"eastus" is not a region of eks'),
        ((), ("moon base",), "region", '"moon base" is not a region of aks, eks or gke'),
        (("mars",), (), "no-catalogue", 'no catalog for "mars"'),
    ],
)
def test_inquiries_when_no_cloud_can_answer_then_refused(
    providers: tuple[str, ...], regions: tuple[str, ...], code: str, said: str
) -> None:
    with pytest.raises(SpecError) as refused:
        choose_inquiries(providers, regions, Account(), SETTINGS)
    (found,) = refused.value.diagnostics
    assert (found.code, found.seen) == (code, said)


@pytest.fixture
def answers(monkeypatch: pytest.MonkeyPatch) -> dict[str, Findings | Exception]:
    """Let clouds answer what the test writes here."""
    written: dict[str, Findings | Exception] = {}

    def answering(name: str, real: CloudCatalog) -> CloudCatalog:
        def fetch(inquiry: Inquiry) -> Findings:
            answer = written[f"{name}/{inquiry.region}"]
            if isinstance(answer, Exception):
                raise answer
            return answer

        return replace(real, fetch=fetch)

    fakes = {name: answering(name, real) for name, real in catalogs().items()}
    monkeypatch.setattr(refreshing, "catalogs", lambda: fakes)
    return written


def inquiry(provider: str = "eks", region: str = "us-east-1") -> Inquiry:
    return Inquiry(provider, region, Account(), SETTINGS)


def test_refresh_when_answered_then_dated_and_ordered(answers: dict[str, Findings | Exception]) -> None:
    answers["eks/us-east-1"] = Findings((P4D, Offer("g6.xlarge")), priced=True, notes=("n",))
    (outcome,) = refresh([inquiry()], [OLD], NOW)
    assert outcome.stock == Stock(
        "eks", "us-east-1", NOW, (Offer("g6.xlarge"), replace(P4D, price_date="2026-12-24")), ("n",), catalog_date()
    )
    assert joined([OLD], [outcome]) == (outcome.stock,)


def test_refresh_when_prices_could_not_be_read_then_those_of_before_stay_with_their_day(
    answers: dict[str, Findings | Exception],
) -> None:
    bare = replace(P4D, price_usd_h=None, spot_usd_h=4.0, vcpus=96)
    answers["eks/us-east-1"] = Findings((bare, Offer("g6.xlarge")), priced=False)
    (outcome,) = refresh([inquiry()], [OLD], NOW)
    assert outcome.stock is not None
    kept = outcome.stock.offers[1]
    assert (kept.price_usd_h, kept.price_date, kept.vcpus) == (21.0, "2026-12-01", 96)
    assert outcome.stock.fetched == NOW


def test_refresh_when_a_price_is_gone_then_it_does_not_stay(answers: dict[str, Findings | Exception]) -> None:
    answers["eks/us-east-1"] = Findings((replace(P4D, price_usd_h=None, spot_usd_h=None),), priced=True)
    (outcome,) = refresh([inquiry()], [OLD], NOW)
    assert outcome.stock is not None
    assert outcome.stock.offers[0].price_usd_h is None


def test_refresh_when_one_cloud_fails_then_its_data_stays_and_the_others_are_new(
    answers: dict[str, Findings | Exception],
) -> None:
    answers["eks/us-east-1"] = AccessError("no AWS credentials were found", where="eks/us-east-1", fix="log in")
    answers["gke/us-central1"] = Findings((), priced=True)
    outcomes = refresh([inquiry(), inquiry("gke", "us-central1")], [OLD], NOW)
    assert refresh_exit_code(outcomes) is ExitCode.PARTLY_DONE
    kept = joined([OLD], outcomes)
    assert [(s.provider, s.fetched) for s in kept] == [("eks", OLD.fetched), ("gke", NOW)]
    failed, done = refresh_document(outcomes, "/cache")["clouds"]
    assert (failed["refreshed"], failed["kept"], failed["types"]) == (False, "2026-12-01", 1)
    assert [e["message"] for e in failed["errors"]] == ["no AWS credentials were found"]
    assert (done["refreshed"], done["kept"], done["errors"]) == (True, "", [])


@pytest.mark.parametrize(
    ("errors", "code"),
    [
        ([], ExitCode.DONE),
        ([None, None], ExitCode.DONE),
        ([None, CloudError("x")], ExitCode.PARTLY_DONE),
        ([CloudError("x")], ExitCode.ERROR),
        ([AccessError("x"), CloudError("x")], ExitCode.ACCESS),
        ([SpecError("x")], ExitCode.BAD_INPUT),
    ],
)
def test_exit_code_when_some_fail_then_three_and_when_all_do_then_that_of_the_first(
    errors: list[CloudError | None], code: ExitCode
) -> None:
    assert refresh_exit_code([Outcome(inquiry(), None, error) for error in errors]) is code


def test_document_when_a_type_is_new_then_named(answers: dict[str, Findings | Exception]) -> None:
    answers["eks/us-east-1"] = Findings((P4D, Offer("p9.48xlarge", "H200", 8)), priced=True, notes=("n",))
    (part,) = refresh_document(refresh([inquiry()], [], NOW), "f")["clouds"]
    assert (part["types"], part["prices"], part["added"], part["notes"]) == (2, 1, ["p9.48xlarge"], ["n"])
    answers["eks/us-east-1"] = CloudError("x")
    (failed,) = refresh_document(refresh([inquiry()], [replace(OLD, notes=("old",))], NOW), "f")["clouds"]
    assert failed["notes"] == []


def test_refresh_when_a_cloud_breaks_unforeseen_then_it_is_a_defect(answers: dict[str, Findings | Exception]) -> None:
    answers["eks/us-east-1"] = ZeroDivisionError()
    with pytest.raises(ZeroDivisionError):
        refresh([inquiry()], [], NOW)
