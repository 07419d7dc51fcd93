"""What people see of a payload."""

from dataclasses import dataclass
from typing import Any, TypedDict

import pytest
from django.test import override_settings
from pydantic import BaseModel, Field, SecretBytes, SecretStr

from django_jobs.operations.payload_view import shown_payload
from django_jobs.redaction import DEFAULT_NAMES, HIDDEN, redact, secret_fields

HIDDEN_NAMES = [
    "password",
    "Password",
    "new_password",
    "userPassword",
    "PASSWORD2",
    "api_key",
    "apiKey",
    "apikey",
    "stripe-api-key",
    "STRIPE_API_KEY",
    "access_token",
    "tokens",
    "Authorization",
    "card",
    "card_number",
    "clientSecret",
    "secrets",
    "sessionid",
    "private key",
    "api_keys",
    "accessKeys",
    "apikeys",
]
SHOWN_NAMES = ["discard", "tokenizer", "cardinality", "author", "key", "pinned", "id", "passing", "", "ключ"]


@pytest.mark.parametrize("name", HIDDEN_NAMES)
def test_a_value_is_hidden_by_the_name_of_its_field(name):
    assert redact({name: "s3cret", "n": 1}, DEFAULT_NAMES) == {name: HIDDEN, "n": 1}


@pytest.mark.parametrize("name", SHOWN_NAMES)
def test_a_name_that_only_looks_alike_hides_nothing(name):
    assert redact({name: "plain"}, DEFAULT_NAMES) == {name: "plain"}


def test_values_are_hidden_at_any_depth_and_whole():
    payload = {"a": [{"b": {"token": {"deep": ["s3cret"]}}}], "password": ["s3cret"], "pin": None}
    shown = redact(payload, DEFAULT_NAMES)
    assert shown == {"a": [{"b": {"token": HIDDEN}}], "password": HIDDEN, "pin": None}
    assert payload["password"] == ["s3cret"]


@pytest.mark.parametrize("payload", [None, 1, "text", [], [1, {"a": 2}], {}, True])
def test_any_json_can_be_shown(payload):
    assert redact(payload, DEFAULT_NAMES) == payload


class Login(BaseModel):
    user: str
    phrase: SecretStr = Field(alias="passPhrase")


@dataclass
class Account:
    login: Login
    code: SecretBytes | None


class Box(TypedDict):
    accounts: list[Account]
    parent: "Box | None"


def test_what_the_signature_declares_secret_is_hidden_by_its_name():
    fields = [("plain", str), ("word", SecretStr), ("words", list[SecretStr]), ("box", Box), ("any", Any)]
    assert secret_fields(fields) == {"word", "words", "phrase", "passPhrase", "code"}
    payload = {"plain": "a", "word": "s", "box": {"accounts": [{"login": {"passPhrase": "s"}, "code": "s"}]}}
    assert redact(payload, (), secret_fields(fields)) == {
        "plain": "a",
        "word": HIDDEN,
        "box": {"accounts": [{"login": {"passPhrase": HIDDEN}, "code": HIDDEN}]},
    }


def test_names_are_the_settings_own():
    with override_settings(DJANGO_JOBS={"REDACT": ["diagnosis"]}):
        assert shown_payload("unknown", {"diagnosis": "x", "password": "y"}) == {"diagnosis": HIDDEN, "password": "y"}
    assert shown_payload("unknown", {"password": "y"}) == {"password": HIDDEN}


def test_the_handler_of_this_build_is_asked():
    from django_jobs import job

    @job("redaction.login")
    def login(phrase: SecretStr, text: str = ""): ...

    assert shown_payload("redaction.login", {"phrase": "s", "text": "t"}) == {"phrase": HIDDEN, "text": "t"}
