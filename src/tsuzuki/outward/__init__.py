"""Acts on the outside world: a bounded HTTP client, SMTP, checks of public addresses, and the outbox, which records an
intent before it is carried out so that an unknown outcome is settled by looking and not by repeating."""
