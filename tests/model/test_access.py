"""Rights, roles and principals."""

import copy

import pytest

from tsuzuki.model.access import CollectorRight, Principal, Right, Role


def test_each_role_has_the_rights_of_the_one_before() -> None:
    viewer, operator, admin = (frozenset(filter(role.has, Right)) for role in Role)
    assert viewer < operator < admin == frozenset(Right)


def test_a_viewer_changes_nothing() -> None:
    changing = {right for right in Right if not right.endswith(":read")} - {Right.ACCESS_OWN}
    assert not any(map(Role.VIEWER.has, changing))


@pytest.mark.parametrize("role", Role)
def test_a_token_never_widens_its_role(role: Role) -> None:
    everything = Principal(actor="token:t", role=role, scopes=frozenset(Right))
    assert everything.rights_among(Right) == frozenset(filter(role.has, Right))


def test_a_scope_outside_the_role_gives_nothing() -> None:
    principal = Principal(actor="token:t", role=Role.VIEWER, scopes=frozenset({Right.JOBS_WRITE}))
    assert not principal.may(Right.JOBS_WRITE)
    assert not principal.rights_among(Right)


def test_no_principal_grants_more_than_it_has() -> None:
    narrowed = Principal(actor="token:t", role=Role.ADMIN, scopes=frozenset({Right.RUNS_READ}))
    assert narrowed.may_grant(Role.VIEWER, {Right.RUNS_READ})
    assert not narrowed.may_grant(Role.VIEWER, None)
    assert not Principal(actor="user:o", role=Role.OPERATOR).may_grant(Role.ADMIN, None)


def test_one_who_is_narrowed_grants_nothing_that_is_not_narrowed() -> None:
    """A collector that is installed later adds a right to every role."""
    everything = Principal(actor="token:t", role=Role.ADMIN, scopes=frozenset(Right))
    assert everything.may_grant(Role.ADMIN, frozenset(Right))
    assert not everything.may_grant(Role.VIEWER, None)


@pytest.mark.parametrize("role", Role)
def test_a_right_of_a_collector_belongs_to_its_role_and_the_roles_above(role: Role) -> None:
    right = CollectorRight("weather:read", role)
    assert [one for one in Role if one.has(right)] == list(Role)[list(Role).index(role) :]
    narrowed = Principal(actor="token:t", role=role, scopes=frozenset({"weather:read"}))
    assert narrowed.may(right)
    assert not narrowed.may(Right.JOBS_READ)
    assert copy.deepcopy(right).role is role


def test_a_collector_that_takes_the_name_of_a_right_does_not_lower_its_role() -> None:
    taken = CollectorRight("access:manage", Role.VIEWER)
    viewer = Principal(actor="user:v", role=Role.VIEWER, scopes=frozenset({taken}))
    assert not viewer.may(Right.ACCESS_MANAGE)
