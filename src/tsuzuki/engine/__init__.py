"""The engine: leader, worker, executors, wake-ups, and the process that runs them."""
