"""Settings of the tests under django-unfold: it has to stand before the admin, so it needs a process of its own."""

from tests.settings import *  # noqa: F403
from tests.settings import INSTALLED_APPS, MIDDLEWARE

INSTALLED_APPS = ["unfold", *INSTALLED_APPS]
# Unfold's own pages have inline scripts.
MIDDLEWARE = [name for name in MIDDLEWARE if not name.startswith("tests.middleware.")]
