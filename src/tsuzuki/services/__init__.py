"""The use-cases, each once, for every interface: command line, library, web, MCP."""
