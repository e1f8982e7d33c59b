"""Deterministic simulation: several processes of the engine in one thread and in simulated time.

Every process is a real `Engine` with its real loops, over one real store. Its threads are greenlets (fibers) that
switch only where a thread could be preempted with effect: before and after each transaction, and wherever it
waits. The order of fibers and all injected faults come from one seed, so every seed can be replayed.
"""
