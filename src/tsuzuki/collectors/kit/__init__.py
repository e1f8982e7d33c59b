"""What more than one collector needs: HTTP, errors, retry-after, redaction, SMTP, prefetch, follow-up runs."""
