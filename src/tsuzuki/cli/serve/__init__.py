"""The commands that keep running: the engine in the foreground, the web page, the tools for agents, the sandbox."""
