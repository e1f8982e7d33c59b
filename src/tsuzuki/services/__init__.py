"""Use cases, each implemented once for all interfaces: command line, library, web and MCP."""
