"""A PostgreSQL that takes nothing but TLS over TCP. Where one cannot be had, the test is skipped."""

import os
import re
import shutil
import socket
import subprocess
from urllib.parse import quote

import pytest

from tests.postgres_server import PostgresServer, database_user

CERTIFICATE = "req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=localhost -addext subjectAltName=DNS:localhost"


class TlsServer(PostgresServer):
    """``certificate`` is self-signed, for the host ``localhost``."""

    def __init__(self):
        self.port = free_port()
        super().__init__(
            listen_addresses="127.0.0.1",
            port=str(self.port),
            ssl="on",
            ssl_cert_file="server.crt",
            ssl_key_file="server.key",
        )

    def start(self):
        try:
            super().start()
        except RuntimeError as error:
            if "SSL is not supported by this build" in str(error):
                pytest.skip("this PostgreSQL was built without TLS")
            raise

    @property
    def certificate(self):
        return self.folder / "data" / "server.crt"

    @property
    def place(self):
        options = {"sslmode": "verify-full", "sslrootcert": str(self.certificate)}
        return {"HOST": "localhost", "PORT": str(self.port), "NAME": "postgres", "OPTIONS": options}

    def url(self, database="postgres"):
        options = f"sslmode=verify-full&sslrootcert={quote(str(self.certificate))}"
        return f"postgresql://postgres@localhost:{self.port}/{database}?{options}"

    def _create_cluster(self):
        super()._create_cluster()
        key = self.certificate.with_suffix(".key")
        make_certificate(self.certificate, key)
        key.chmod(0o600)
        for path in (self.certificate, key):
            os.chown(path, *database_user())
        access = self.folder / "data" / "pg_hba.conf"
        access.write_text(re.sub(r"^host\b", "hostssl", access.read_text(), flags=re.MULTILINE))


def make_certificate(certificate, key):
    """Write a certificate for localhost that nobody but itself has signed, and its key."""
    if shutil.which("openssl") is None:
        pytest.skip("openssl is not installed (apt-get install openssl)")
    words = ["openssl", *CERTIFICATE.split(), "-keyout", str(key), "-out", str(certificate)]
    subprocess.run(words, check=True, capture_output=True)


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return listener.getsockname()[1]
