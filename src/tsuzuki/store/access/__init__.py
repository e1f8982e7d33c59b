"""Users, tokens, sessions, attempts to sign in, and the setup code: one module for each."""
