"""All the maintenance of one process: what must be prompt in one thread, what may take its time in another.

A table that is locked holds up the slow thread only; who is to be told has a third one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import timedelta

from django_jobs.conf import Settings
from django_jobs.engines import open_session, stand_alone
from django_jobs.engines.config import EngineConfig
from django_jobs.engines.protocol import Judge, Session
from django_jobs.operations.build import build_fingerprint
from django_jobs.operations.firing import SetAside

from .absence import Absence
from .counts import Counts
from .declarer import Declarer
from .firing import Firing
from .lookout import Lookout
from .mender import Mender
from .rescuer import Rescuer
from .service import Maintenance, Service
from .services import notifying, slow_services
from .stager import Stager

SLOW_PATIENCE = timedelta(minutes=10)


class Upkeep:
    """``own``: services about this process alone. ``shared``: take part in what keeps the tables going. ``beat``: see
    Maintenance; of the prompt thread, since the others may take their time.
    """

    def __init__(
        self,
        settings: Settings,
        config: EngineConfig,
        *,
        own: Sequence[Service],
        judge: Judge,
        counts: Counts,
        poke: Callable[[], None],
        beat: Callable[[float], None] = lambda rest: None,
        shared: bool = True,
    ) -> None:
        self._config = replace(config, build=build_fingerprint())
        self._threads = [Maintenance(self._open_session, [*own, Absence(settings.database)], beat=beat)]
        look_every = min(settings.stage_every, settings.rescue_every)
        self._lookout = lookout = Lookout(look_every, settings.lease, settings.queues, self.hasten)
        if shared:
            aside = SetAside()
            # Own services last of those that use the thread's connection: they close it.
            stager, rescuer = Stager(settings.stage_every, poke), Rescuer(judge, counts.add_lost)
            schedules = [service(aside, lookout.leads, lookout.is_covered) for service in (Firing, Mender)]
            prompt: list[Service] = [*schedules, Declarer(), *own, lookout, stager, rescuer]
            slow, telling = slow_services(settings, self.hasten), [notifying(settings)]
            self._threads = [
                Maintenance(self._open_session, prompt, beat=beat),
                Maintenance(self._open_patient_session, [], leading=slow, leads=lookout.leads, name="upkeep"),
                Maintenance(self._open_patient_session, [], leading=telling, leads=lookout.leads, name="notifying"),
            ]

    def _open_session(self) -> Session:
        """Called in a thread of maintenance, whose services use Django's connection too."""
        stand_alone(self._config, self._config.patience)
        return open_session(self._config)

    def _open_patient_session(self) -> Session:
        """The slow services read and remove by the thousand, however short the jobs' lease is."""
        stand_alone(self._config, SLOW_PATIENCE)
        return open_session(self._config)

    def hasten(self, name: str, seconds: float = 0.0) -> None:
        """Give a service its next turn in so many seconds, or earlier. Safe from any thread; unknown names pass."""
        for thread in self._threads:
            thread.hasten(name, seconds)

    @property
    def died(self) -> bool:
        """Has one of the threads ended although nobody asked it to?"""
        return any(thread.died for thread in self._threads)

    @property
    def in_outage(self) -> bool:
        """Did the jobs database not answer when this process asked last who leads?"""
        return self._lookout.in_outage

    def start(self) -> None:
        for thread in self._threads:
            thread.start()

    def stop(self, timeout: float = 5.0) -> None:
        for thread in self._threads:
            thread.ask_to_stop()
        for thread in self._threads:
            thread.stop(timeout)
