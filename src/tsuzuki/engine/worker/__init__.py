"""Working: start assigned runs, execute them, report how they ended, and stay alive in the database's eyes."""
