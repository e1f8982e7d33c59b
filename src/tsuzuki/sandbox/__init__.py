"""The kit for stand-ins of outside services, over real HTTP and SMTP, with faults on demand.

The stand-ins themselves are in the folder `sandbox` of their collector. They serve the published contracts closely
enough for the real client libraries, and know nothing of the rest of Tsuzuki: to a collector the sandbox is just
another base URL.
"""
