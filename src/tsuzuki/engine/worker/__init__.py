"""Working: start assigned runs, execute them, report how they ended, and send heartbeats."""
