"""What more than one collector needs. The kit imports no collector.

http, retry_after        requests within limits of time and size; pauses that a server asks for
safe_download            GET of an address that a stranger may have written
errors, redaction        the error family; secrets taken out of what others said
prefetch                 the next page while this one is committed
host_pool, rate_gate     threads per host; a pause for all of them
outbox, smtp             outward acts done at most once; mail (`smtp_settings`: its settings)
claim, upsert, follow_up an item for one run at a time; a page's rows; a run when there is quota
"""
