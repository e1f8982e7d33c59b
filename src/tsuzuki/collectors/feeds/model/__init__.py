"""Models: one question, one request, one checked answer or one error that says what to do."""
