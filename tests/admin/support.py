"""What the tests of the admin's pages share."""

from django.urls import reverse

LISTS = ["job", "deadjob", "jobhistory", "schedule", "queue", "worker", "alert", "bulkoperation", "auditentry"]
VIEWS = [f"view_{name}" for name in LISTS]


def url(name, *args):
    return reverse(f"admin:django_jobs_{name}", args=args)


def page(client, name, *args, **query):
    """The text of a page that is there."""
    response = client.get(url(name, *args), query)
    assert response.status_code == 200, response
    return response.content.decode()


def messages_of(response):
    return [str(message) for message in response.context["messages"]]
