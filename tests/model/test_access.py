"""Rights, roles and principals."""

import pytest

from tsuzuki.model.access import Principal, Right, Role


def test_each_role_has_the_rights_of_the_one_before() -> None:
    viewer, operator, admin = (role.rights for role in Role)
    assert viewer < operator < admin == frozenset(Right)


def test_a_viewer_changes_nothing() -> None:
    changing = {right for right in Right if not right.endswith(":read")} - {Right.ACCESS_OWN}
    assert not Role.VIEWER.rights & changing


@pytest.mark.parametrize("role", Role)
def test_a_token_never_widens_its_role(role: Role) -> None:
    everything = Principal(actor="token:t", role=role, scopes=frozenset(Right))
    assert everything.rights == role.rights


def test_a_scope_outside_the_role_gives_nothing() -> None:
    principal = Principal(actor="token:t", role=Role.VIEWER, scopes=frozenset({Right.JOBS_WRITE}))
    assert not principal.may(Right.JOBS_WRITE)
    assert not principal.rights


def test_no_principal_grants_more_than_it_has() -> None:
    narrowed = Principal(actor="token:t", role=Role.ADMIN, scopes=frozenset({Right.RUNS_READ}))
    assert narrowed.may_grant(Role.VIEWER, {Right.RUNS_READ})
    assert not narrowed.may_grant(Role.VIEWER, None)
    assert not Principal(actor="user:o", role=Role.OPERATOR).may_grant(Role.ADMIN, None)
