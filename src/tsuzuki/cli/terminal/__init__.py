"""Terminal input and output: values, tables, progress and confirmations."""
