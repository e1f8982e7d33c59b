"""Stand-ins for outside services, over real HTTP and SMTP, with faults on demand.

They serve the published contracts closely enough for the real client libraries, and know nothing of
the rest of Tsuzuki: to a collector the sandbox is just another base URL.
"""
