"""A development project. Every value that a deployment would change comes from the environment."""

from datetime import timedelta
from pathlib import Path
from typing import Any

import django
import environ

env = environ.Env()

BASE_DIR = Path(__file__).resolve().parent.parent
VAR_DIR = Path(env.str("VAR_DIR", default=str(BASE_DIR / "var")))
VAR_DIR.mkdir(parents=True, exist_ok=True)

SECRET_KEY = env.str("SECRET_KEY", default="for-development-only")
DEBUG = env.bool("DEBUG", default=True)
ALLOWED_HOSTS = env.list("ALLOWED_HOSTS", default=["localhost", "127.0.0.1", "[::1]"])

INSTALLED_APPS = [
    "django.contrib.admin",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
    "django_jobs",
    "testproject.shop",
]

MIDDLEWARE = [
    "django.middleware.security.SecurityMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
]

TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
            ],
        },
    },
]

ROOT_URLCONF = "testproject.urls"
STATIC_URL = "static/"

SQLITE_OPTIONS = {
    "transaction_mode": "IMMEDIATE",
    "init_command": "PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL",
    "timeout": 30,
}


def database_from_environment() -> dict[str, Any]:
    database: dict[str, Any] = env.db_url("DATABASE_URL", default=f"sqlite:///{VAR_DIR / 'testproject.sqlite3'}")
    options = database.setdefault("OPTIONS", {})
    if database["ENGINE"].endswith("sqlite3"):
        database["OPTIONS"] = SQLITE_OPTIONS | options
    elif "host" in options:
        database["HOST"] = options.pop("host")
    return database


DATABASES = {"default": database_from_environment()}
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

USE_TZ = True
TIME_ZONE = "UTC"

DJANGO_JOBS = {"QUEUES": ["default", "urgent", "bulk"]}

# Everything that the shop writes besides rows: mails, invoices, gift cards, reports.
SHOP_DIR = Path(env.str("SHOP_DIR", default=str(VAR_DIR / "shop")))
# Where the carriers and the ERP system answer.
SHOP_PARTNER_URL = env.str("SHOP_PARTNER_URL", default="http://127.0.0.1:8001")
SHOP_REVIEW_DELAY = timedelta(seconds=env.float("SHOP_REVIEW_DELAY", default=14 * 24 * 3600))
# Numbers of orders whose receipt and loyalty points fail in their first attempt, to see what becomes of them.
SHOP_FAIL_FIRST_ATTEMPT = env.list("SHOP_FAIL_FIRST_ATTEMPT", default=[])

FILE_MAILER = "django.core.mail.backends.filebased.EmailBackend"
if django.VERSION >= (6, 1):
    MAILERS = {"default": {"BACKEND": FILE_MAILER, "OPTIONS": {"file_path": SHOP_DIR / "mail"}}}
else:
    EMAIL_BACKEND = FILE_MAILER
    EMAIL_FILE_PATH = SHOP_DIR / "mail"
DEFAULT_FROM_EMAIL = "shop@example.com"
