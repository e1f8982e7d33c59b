"""Stream topic `statuses`: the number of statuses each job has stored."""

from tsuzuki.web.stream.state_topic import StateTopic
from tsuzuki_statuses.rights import STATUSES_READ


def _state(application):
    service = application.service("statuses")
    return {
        view.job: {"kept": service.count(job=view.job), "newest_id": view.newest_id}
        for view in service.cursors()
    }


TOPICS = (StateTopic(name="statuses", right=STATUSES_READ, read=_state),)
