"""A worker fleet under attack: what is done to it, and whether the promises of the package hold.

``python -m faults`` (or ``make faults``) takes each *fault* of ``faults.catalogue`` in turn. A fault gets an *arena*: a
database, real worker processes, and a process that commits jobs with business data and notes each that the database
acknowledged. When the fault is over and all jobs have ended, the *verdict* is found in the tables and in the journal
that the handlers write. ``docs/guides/faults.md`` says what each fault does.
"""
