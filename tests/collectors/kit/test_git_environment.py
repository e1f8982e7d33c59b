"""What a git of ours inherits: ways to a repository, no secrets."""

from tsuzuki.collectors.kit.git_environment import git_environment

PASSED_ON = {
    "HOME": "/home/me",
    "PATH": "/bin",
    "LC_ALL": "C",
    "SSH_AUTH_SOCK": "/run/agent",
    "https_proxy": "http://proxy:3128",
    "NO_PROXY": "localhost",
    "GIT_SSL_CAINFO": "/etc/ca.pem",
    "XDG_CONFIG_HOME": "/home/me/.config",
}
KEPT_BACK = {
    "TSUZUKI_DATABASE_URL": "postgresql://u:p@h/d",
    "GOOGLE_BOOKS_KEY": "k",
    "GITLAB_TOKEN": "t",
    "SMTP_PASSWORD": "p",
    "AWS_SECRET_ACCESS_KEY": "s",
    "GIT_DIR": "/elsewhere",
    "GIT_CONFIG_COUNT": "1",
    "SSH_ASKPASS": "/usr/bin/ask",
    "SSH_ASKPASS_REQUIRE": "force",
    "MY_OWN": "x",
}


def test_git_inherits_what_leads_to_a_repository_and_nothing_else() -> None:
    assert git_environment({**PASSED_ON, **KEPT_BACK}) == PASSED_ON
