"""The PostgreSQL engine: one statement a file in ``sql/``, each with its contract on top."""
