"""The whole engine, several processes of it, in one thread and in simulated time.

Every process is a real `Engine` with its real loops, over one real store. Its threads are greenlets that hand over
only where a thread could be held up: before and after each transaction, and wherever it waits. Who goes
on, what fails and when is drawn from one seed, so that a seed is a story that can be told again.
"""
