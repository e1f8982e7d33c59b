"""The HTTP API: translates a request into a call of a service. Started by `cli` by import string."""
