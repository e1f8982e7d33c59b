"""`tsuzuki job`: its subcommands, prompts and views."""
