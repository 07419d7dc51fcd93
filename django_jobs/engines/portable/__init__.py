"""The engine for SQLite, through Django's own connections and models.

One writer at a time: every transaction of the session is IMMEDIATE, so no row is ever locked by another, and
nothing is busy. Times are this machine's, which is SQLite's.
"""
