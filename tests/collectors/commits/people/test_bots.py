"""Bots are known by the names and addresses that services give them; people are not."""

import pytest

from tsuzuki.collectors.commits.people.bots import is_known_bot


@pytest.mark.parametrize(
    ("name", "email"),
    [
        ("dependabot[bot]", "49699333+dependabot[bot]@users.noreply.github.com"),
        ("Renovate Bot", "bot@renovateapp.com"),
        ("renovate[bot]", "29139614+renovate[bot]@users.noreply.github.com"),
        ("github-actions", "github-actions@github.com"),
        ("GitHub Actions", "41898282+github-actions[bot]@users.noreply.github.com"),
        ("My token", "project_123_bot_4ffca233d8298ea1@noreply.gitlab.example.com"),
        ("My token", "project123_bot@noreply.gitlab.example.com"),
        ("My token", "project123_bot2@example.com"),
        ("Release", "group_7_bot@noreply.gitlab.com"),
        ("project_123_bot", "someone@example.com"),
        ("Deploy", "service_account_group_1_abc@noreply.gitlab.com"),
        ("Semantic-Release-Bot", "semantic-release-bot@martynus.net"),
    ],
)
def test_a_bot(name: str, email: str) -> None:
    assert is_known_bot(name, email)


@pytest.mark.parametrize(
    ("name", "email"),
    [
        ("Ann Abbot", "abbot@example.org"),
        ("Bot Nguyen", "bot.nguyen@example.org"),
        ("Ann", "1234+ann@users.noreply.github.com"),
        ("Ann", "1234-ann@users.noreply.gitlab.com"),
        ("Project Lead", "project@example.org"),
        ("Talbot", "talbot@example.org"),
        ("", ""),
    ],
)
def test_a_person(name: str, email: str) -> None:
    assert not is_known_bot(name, email)
