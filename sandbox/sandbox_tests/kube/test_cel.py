"""Selectors of devices: what they match, and where they fail. What compiles, a real server judges elsewhere."""

from __future__ import annotations

import pytest

from gpukube_sandbox.kube.store.cel.selectors import CelError, CelSyntaxError, compile_selector, matches_device

DRIVER = "gpu.nvidia.com"
DEVICE = {
    "name": "gpu-0-mig-1g5gb-19-0",
    "attributes": {
        "type": {"string": "mig"},
        "profile": {"string": "1g.5gb"},
        "productName": {"string": "NVIDIA A100-SXM4-40GB"},
        "cudaComputeCapability": {"version": "8.0.0"},
        "healthy": {"bool": False},
        "numa": {"int": 1},
        "resource.kubernetes.io/pciBusID": {"string": "0000:07:00.0"},
    },
    "capacity": {"memory": {"value": "4864Mi"}},
}
GPU = "device.attributes['gpu.nvidia.com']"
MEMORY = "device.capacity['gpu.nvidia.com'].memory"


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        (f"device.driver == '{DRIVER}' && {GPU}.type == 'mig'", True),
        (f"{GPU}.profile == '1g.5gb' || {GPU}.nothing == 'a'", True),
        (f"{GPU}.nothing == 'a' || {GPU}.profile == '1g.5gb'", True),
        (f"{GPU}.nothing == 'a' && {GPU}.profile == '2g.10gb'", False),
        (f"{GPU}.?profile.orValue('none') == '1g.5gb'", True),
        (f"{GPU}.?nothing.orValue('none') == 'none'", True),
        (f"{GPU}[?'nothing'].hasValue()", False),
        ("device.attributes[?'other.example.com'].?a.orValue(3) == 3", True),
        (f"has({GPU}.profile) && !has({GPU}.nothing)", True),
        ("has(device.attributes['other.example.com'].a)", False),
        (f"'profile' in {GPU}", True),
        (f"{GPU}.profile in ['1g.5gb', '2g.10gb']", True),
        (f"['1g.5gb', '2g.10gb'].exists(p, p == {GPU}.profile)", True),
        (f"['1g.5gb', '2g.10gb'].all(p, p == {GPU}.profile)", False),
        (f"cel.bind(gpu, {GPU}, gpu.type == 'mig' && gpu.numa + 1 == 2)", True),
        (f"{MEMORY}.compareTo(quantity('4Gi')) > 0", True),
        (f"{MEMORY}.isLessThan(quantity('40Gi'))", True),
        (f"{MEMORY} == quantity('4864Mi')", True),
        (f"{GPU}.cudaComputeCapability.isGreaterThan(semver('7.5.0'))", True),
        (f"{GPU}.cudaComputeCapability == semver('v8.0', true)", True),
        (f"{GPU}.cudaComputeCapability.compareTo(semver('10.0.0')) < 0", True),
        ("semver('1.0.0-rc.2').isLessThan(semver('1.0.0-rc.10'))", True),
        (f"{GPU}.cudaComputeCapability != '8.0.0'", True),
        (f"{GPU}.productName.lowerAscii().matches('^.*a100.*$')", True),
        (f"{GPU}.productName.split(' ')[1].startsWith('A100')", True),
        (f"{GPU}.type == 1", False),
        (f"{GPU}.healthy", False),
        (f"{GPU}.numa > 0.5", True),
        ("device.attributes['resource.kubernetes.io'].pciBusID == '0000:07:00.0'", True),
        ("device.allowMultipleAllocations", False),
        ("-7 / 2 == -3 && -7 % 2 == -1", True),
        (f"{GPU}.?profile.optMap(p, p + '+me').orValue('') == '1g.5gb+me'", True),
    ],
)
def test_selector_when_evaluated_for_a_device_then_matches_by_its_values(expression: str, *, expected: bool) -> None:
    assert matches_device(expression, DRIVER, DEVICE) is expected


@pytest.mark.parametrize(
    ("expression", "why"),
    [
        (f"{GPU}.nothing == 'a'", "no such key: nothing"),
        (f"{GPU}.nothing == 'a' && {GPU}.profile == '1g.5gb'", "no such key: nothing"),
        (f"['nothing', 'neither'].all(p, {GPU}[p] == 'a')", "no such key: nothing"),
        (f"{GPU}.cudaComputeCapability == '8.0.0'", "no such overload"),
        (f"{GPU}.profile > 3", "no such overload"),
        (f"{GPU}.profile", "could not be converted to bool"),
        (f"{GPU}.profile.split('.')[9] == 'a'", "index out of bounds: 9"),
        (f"{GPU}.numa / 0 == 1", "division by zero"),
        ("semver('8.0') == semver('8.0.0')", "No Major.Minor.Patch elements found"),
    ],
)
def test_selector_when_it_fails_for_a_device_then_the_failure_is_no_mismatch(expression: str, why: str) -> None:
    with pytest.raises(CelError, match=why):
        matches_device(expression, DRIVER, DEVICE)


def test_selector_when_it_does_not_parse_then_the_place_is_named() -> None:
    with pytest.raises(CelSyntaxError) as refused:
        compile_selector("true &&\n  device.driver ==")

    assert str(refused.value) == (
        "ERROR: <input>:2:19: Syntax error: mismatched input '<EOF>'\n |   device.driver ==\n | ..................^"
    )
