"""`tsuzuki run` and `tsuzuki run-due`: inspect, watch and start runs."""
