"""The payload of a job: what a handler's signature accepts, as JSON and back.

``Signature`` reads a handler once and then encodes and decodes its payloads. ``payload_hash`` is what an
idempotency key remembers of one.
"""

from django_jobs.payload.digest import payload_hash
from django_jobs.payload.parameters import Field
from django_jobs.payload.signature import Signature, UndecodablePayload

__all__ = ["Field", "Signature", "UndecodablePayload", "payload_hash"]
