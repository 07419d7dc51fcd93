"""What an idempotency key remembers of a payload.

Guarantees: equal for payloads that differ only in the order of keys, in every process and on every machine;
different, as far as SHA-256 goes, for any other difference, including 1, "1" and true. Defaults that were
not given do not count, so adding a parameter with a default does not turn a repeat into a conflict.
"""

from __future__ import annotations

import hashlib
import json


def payload_hash(job_type: str, payload_json: bytes) -> bytes:
    """SHA-256 (32 bytes) over the job type and the canonical form of what ``Signature.encode`` returned."""
    canonical = json.dumps(json.loads(payload_json), sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(f"{json.dumps(job_type)}\n{canonical}".encode()).digest()
