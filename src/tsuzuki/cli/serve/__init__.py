"""Commands that keep running: the engine, the web page, the tools for agents, and the sandbox."""
