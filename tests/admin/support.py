"""What the tests of the admin's pages share."""

from django.urls import reverse

LISTS = ["job", "deadjob", "jobhistory", "queue", "worker", "bulkoperation", "auditentry"]
VIEWS = [
    "view_job",
    "view_deadjob",
    "view_jobhistory",
    "view_queue",
    "view_worker",
    "view_bulkoperation",
    "view_auditentry",
]


def url(name, *args):
    return reverse(f"admin:django_jobs_{name}", args=args)


def page(client, name, *args, **query):
    """The text of a page that is there."""
    response = client.get(url(name, *args), query)
    assert response.status_code == 200, response
    return response.content.decode()


def messages_of(response):
    return [str(message) for message in response.context["messages"]]
