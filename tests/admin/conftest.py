import pytest
from django.contrib.auth.models import Permission, User


@pytest.fixture
def make_user(db):
    """A member of staff with these of our permissions."""

    def make(*codenames, name="olga", **fields):
        user = User.objects.create_user(name, password="pass", is_staff=True, **fields)
        granted = Permission.objects.filter(content_type__app_label="django_jobs", codename__in=codenames)
        assert len(granted) == len(codenames), f"not all of these exist: {codenames}"
        user.user_permissions.set(granted)
        return user

    return make


@pytest.fixture
def boss(client, db):
    """A client that may do everything."""
    client.force_login(User.objects.create_superuser("boss", password="pass"))
    return client
