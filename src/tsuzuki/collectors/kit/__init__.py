"""What at least two collectors use. The kit imports no collector.

prefetch          the next page while this one is committed
upsert            a page's rows, stored or updated in one statement
follow_up         a run when there is quota again
zone_day          the day of a quota, in the zone of its service
git_environment   the environment of a git that reads a stranger's repository
regular_file      the start of a file that a stranger may have put there
"""
