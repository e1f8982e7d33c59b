"""The domain model: jobs, runs and their state machine, schedules, retries, settings, errors. No I/O."""
