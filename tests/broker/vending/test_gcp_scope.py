"""The access boundary: pinned whole, and evaluated with cel-python."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lakepass.broker.vending.errors import ScopeRefused
from lakepass.broker.vending.gcp_scope import access_boundary, cel_text
from lakepass.reader.location import Location
from tests.broker.vending.boundary import can_list, can_read, within
from tests.broker.vending.locations import HOSTILE, neighbours, paths

ORDERS = Location.parse("gs://lake/sales/orders")


def test_pinned() -> None:
    assert access_boundary(ORDERS) == {
        "accessBoundary": {
            "accessBoundaryRules": [
                {
                    "availableResource": "//storage.googleapis.com/projects/_/buckets/lake",
                    "availablePermissions": ["inRole:roles/storage.objectViewer"],
                    "availabilityCondition": {
                        "expression": (
                            "resource.name.startsWith('projects/_/buckets/lake/objects/sales/orders/') || "
                            "resource.name.startsWith('projects/_/buckets/lake/folders/sales/orders/') || "
                            "api.getAttribute('storage.googleapis.com/objectListPrefix', '')"
                            ".startsWith('sales/orders/')"
                        )
                    },
                }
            ]
        }
    }


def test_pinned_for_a_hostile_path() -> None:
    boundary = access_boundary(Location.parse("gs://lake/a') || true || ('\"é"))
    rule = boundary["accessBoundary"]["accessBoundaryRules"][0]
    assert rule["availabilityCondition"]["expression"].endswith(r".startsWith('a\') || true || (\'\"é/')")


@settings(deadline=None, max_examples=150)
@given(data=st.data(), path=paths)
def test_opens_exactly_what_lies_below(data: st.DataObject, path: str) -> None:
    boundary = access_boundary(Location("gs", "lake", path))
    name = data.draw(neighbours(path))
    below = name.startswith(f"{path}/")
    assert can_read(boundary, "lake", name) is below
    assert can_list(boundary, "lake", name) is below
    assert not can_read(boundary, "lake2", name)


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_names_stay_themselves(name: str) -> None:
    boundary = access_boundary(Location.parse(f"gs://lake/t/{name}"))
    assert can_read(boundary, "lake", f"t/{name}/x")
    assert can_list(boundary, "lake", f"t/{name}/")
    for other in ("t/other/x", f"t/{name}2/x", f"t/{name}", "t/", "secret"):
        assert not can_read(boundary, "lake", other)
        assert not can_list(boundary, "lake", other)


@pytest.mark.parametrize(
    "permission",
    [
        "storage.objects.create",
        "storage.objects.delete",
        "storage.objects.update",
        "storage.objects.setIamPolicy",
        "storage.buckets.get",
        "storage.buckets.delete",
        "storage.hmacKeys.create",
    ],
)
def test_allows_no_other_permission(permission: str) -> None:
    assert not within(access_boundary(ORDERS), permission, "lake", "sales/orders/x")


def test_a_list_without_prefix_is_outside() -> None:
    assert not can_list(access_boundary(ORDERS), "lake", "")


def test_addresses_cannot_be_held() -> None:
    with pytest.raises(ScopeRefused, match=r"gcp\.bind_source_ip"):
        access_boundary(ORDERS, source_ranges=["192.0.2.0/24"])


def test_a_whole_bucket_is_refused() -> None:
    with pytest.raises(ScopeRefused, match="whole bucket"):
        access_boundary(Location.parse("gs://lake", allow_root=True))


def test_control_characters_are_refused() -> None:
    with pytest.raises(ScopeRefused):
        cel_text("a\x00b")
