"""The engine loop: settle what ended, claim for what is free, wait for the next event.

One thread, one connection. Outcomes gather while a tick is under way, so a busy process settles hundreds in
one statement and an idle one settles each at once. An outcome leaves the loop only when it is written or its
lease is known to be lost; while the database is away it waits here, its lease renewed, and the loop tries
again with growing pauses.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from datetime import timedelta

from django_jobs import clock
from django_jobs.engines.protocol import EngineUnavailable, Session
from django_jobs.engines.values import ClaimedJob, ClaimRequest, Tick
from django_jobs.logs import get_logger
from django_jobs.maintenance.counts import Counts
from django_jobs.outcomes import Outcome, Rescheduled, Settled
from django_jobs.registry import registry

from .backoff import Backoff
from .books import Books
from .busy import BusyRows
from .dispatcher import Dispatcher
from .endings import HAND_BACK_DELAY, handed_back
from .executor import Ended
from .held import Held
from .overruns import LOOK_SECONDS, Overruns
from .poke import Poke
from .progress import ProgressWriter
from .pulse import Pulse
from .recycling import Recycling
from .running import Run
from .slots import Slots
from .stopping import Step, Stopping
from .wake import Sleeper

logger = get_logger("django_jobs.worker")

MOST_OUTCOMES = 1000
STALE_SECONDS = 1.0
SHORT_POLL = 0.1
RESIGNING_SECONDS = 0.5
SURPLUS_DELAY = timedelta(seconds=1)


class Loop:
    """``hasten`` gives a service of maintenance its turn. ``drain``: end when nothing is left for these queues within
    the horizon; None: go on until ``stop``.
    """

    def __init__(
        self,
        *,
        session: Session,
        groups: Sequence[Slots],
        held: Held,
        counts: Counts,
        dispatcher: Dispatcher,
        sleeper: Sleeper,
        poke: Poke,
        overruns: Overruns,
        busy_rows: BusyRows,
        pulse: Pulse,
        recycling: Recycling,
        hasten: Callable[[str, float], None],
        drain: timedelta | None = None,
        shutdown_timeout: timedelta = timedelta(seconds=30),
    ) -> None:
        self.session = session
        self.groups = groups
        self.held = held
        self.dispatcher = dispatcher
        dispatcher.post = self.post
        self.sleeper = sleeper
        self.poke = poke
        self.overruns = overruns
        self.busy_rows = busy_rows
        self.pulse = pulse
        self.recycling = recycling
        self.drain = drain
        self._hasten = hasten
        self._books = Books(held, counts, lambda seconds: hasten("stager", seconds))
        self._progress = ProgressWriter(session, held)
        self._stopping = Stopping(shutdown_timeout.total_seconds())
        self._backoff = Backoff()
        self._inbox: deque[tuple[Run, Ended]] = deque()
        self._unsettled: list[Outcome] = []
        self._wait = 0.0
        self._rotation = 0
        self._left_behind = False
        self._woken = False

    # From other threads

    def post(self, run: Run, outcome: Ended) -> None:
        self._inbox.append((run, outcome))
        self.poke.poke()

    def stop(self) -> None:
        """Ask to end: first gracefully, a second time at once. Safe in a signal handler."""
        self._stopping.ask()
        self.poke.poke()

    def end(self) -> None:
        """End gracefully for a reason of our own. Safe from any thread."""
        self._stopping.end()
        self.poke.poke()

    @property
    def left_behind(self) -> bool:
        """Were running jobs handed back, or handlers given up on, that may still be running?"""
        return self._left_behind or self.overruns.stuck > 0

    @property
    def retiring(self) -> str:
        """Why this process is to be replaced once its running jobs have ended. Empty: it is not."""
        return self._stopping.retiring

    @property
    def in_outage(self) -> bool:
        """Did the jobs database not answer when it was last asked?"""
        return self._backoff.active

    # The loop

    def run(self) -> None:
        while True:
            self.pulse.beat()
            self._stop_further()
            self._tend()
            self._turn()
            if self._finished():
                return
            self._pause()

    def _turn(self) -> None:
        """One tick, if there is anything to settle or to claim for."""
        if self._backoff.left and not self._stopping.handed_back:
            self._wait = self._backoff.left
            return
        if (self._backoff.active or self._backoff.looks_again()) and not self._gave_unknown_back():
            return
        outcomes = self._gather()
        claims = self._claims()
        try:
            if claims:
                self.sleeper.before_claim()
            tick = self.session.tick(outcomes, claims) if outcomes or claims else Tick()
        except EngineUnavailable as error:
            self._unsettled = outcomes
            self._back_off(error)
            return
        self._backoff.succeeded()
        self._unsettled = list(tick.busy)
        self.busy_rows.note(tick.busy)
        self._books.close(outcomes, tick)
        for claim, jobs in zip(claims, tick.jobs, strict=True):
            self._accept(claim, jobs)
        self._ask_who_leads(found=any(tick.jobs))
        self._plan(claims, tick)

    def _ask_who_leads(self, *, found: bool) -> None:
        """Woken for nothing: so does a leader that stops, first when it leaves the sleepers, then when it resigns."""
        if self._woken and not found:
            self._hasten("lookout", RESIGNING_SECONDS)
        self._woken = False

    def _gather(self) -> list[Outcome]:
        """Outcomes to write. Runs whose handler's transaction settled them, or that lost their lease, are closed
        here.
        """
        outcomes = self._unsettled
        while self._inbox and len(outcomes) < MOST_OUTCOMES:
            run, outcome = self._inbox.popleft()
            match outcome:
                case None:
                    self._books.close_lost(run)
                case Settled():
                    self._books.close_settled(run, outcome)
                case _:
                    outcomes.append(outcome)
        return outcomes

    def _claims(self) -> list[ClaimRequest]:
        """One for each group with room. The queues of a group take turns in being first."""
        if self._stopping.begun:
            return []
        self._rotation += 1
        suspects = 0 if self.held.suspects() else 1
        claims = []
        for group in self.groups:
            wanted = group.wanted()
            if wanted:
                turn = self._rotation % len(group.queues)
                queues = group.queues[turn:] + group.queues[:turn]
                claims.append(ClaimRequest(queues=queues, limit=wanted, suspects=suspects))
        return claims

    def _accept(self, claim: ClaimRequest, jobs: Sequence[ClaimedJob]) -> None:
        if not jobs:
            return
        group = next(group for group in self.groups if claim.queues[0] in group.queues)
        group.prefetch.saw(jobs)
        runs = [Run(job, registry.find(job.type)) for job in self._one_suspect_at_most(jobs)]
        self.held.add(group, runs)
        group.add(runs)
        if not (self._stopping.asked or self._stopping.begun):
            self.dispatcher.fill(group)
        if len(jobs) == claim.limit or jobs[0].lost_runs:
            self._wake_another(jobs[-1].queue)

    def _one_suspect_at_most(self, jobs: Sequence[ClaimedJob]) -> list[ClaimedJob]:
        """Two groups may each have claimed one: the second goes back."""
        surplus = [job for job in jobs if job.lost_runs and self.held.suspects()]
        self._unsettled += [handed_back(job, SURPLUS_DELAY) for job in surplus]
        return [job for job in jobs if job not in surplus]

    def _wake_another(self, queue: str) -> None:
        """There may be work for another process: the claim came back full, or with a suspect, of which a process takes
        one at a time. It is not to be us that is woken.
        """
        with suppress(EngineUnavailable):
            self.sleeper.wake_another(queue)

    # Waiting

    def _plan(self, claims: Sequence[ClaimRequest], tick: Tick) -> None:
        """Decide how long to wait for an event."""
        full = any(len(jobs) == claim.limit for claim, jobs in zip(claims, tick.jobs, strict=True))
        if (self._unsettled and not tick.busy) or (full and any(group.has_free for group in self.groups)):
            self._wait = 0.0
        elif self.drain is not None:
            self._wait = SHORT_POLL
        else:
            self._wait = self._sleep(found=any(tick.jobs))
        if tick.busy:
            self._wait = SHORT_POLL if self.busy_rows.persist else 0.0

    def _sleep(self, *, found: bool) -> float:
        if self._stopping.begun:
            return SHORT_POLL
        try:
            return self.sleeper.after_claim(found=found, queues=self._free_queues())
        except EngineUnavailable as error:
            self._back_off(error)
            return self._wait

    def _pause(self) -> None:
        wait = self._wait
        if self._inbox and not self._backoff.active:
            wait = 0.0
        if self._stopping.begun:
            wait = min(wait, SHORT_POLL)
        if len(self.held) or self.overruns.watching:
            wait = min(wait, LOOK_SECONDS)
        wait = min(wait, self._backoff.next_look)
        self.pulse.beat(wait)
        if self._backoff.active:
            self.poke.wait(None, wait)
        elif not self._notified():
            self._wait_for_event(min(wait, self._wait))

    def _wait_for_event(self, seconds: float) -> None:
        """Until somebody pokes, a notification comes, or time is over. A silent database is peeked at now and then."""
        peek = self.session.peek_every
        if peek is None or self.drain is not None:
            self.poke.wait(self.session.fileno(), seconds)
            self._notified()
            return
        end = clock.monotonic() + seconds
        while (left := end - clock.monotonic()) > 0:
            if self.poke.wait(None, min(left, peek.total_seconds())) or self._notified():
                return

    def _notified(self) -> bool:
        """Take what has arrived, also beside the answers of the last tick; get up if this process is wanted."""
        try:
            wanted = self.sleeper.notified(self._free_queues())
        except EngineUnavailable as error:
            self._back_off(error)
            return False
        if wanted:
            self._woken = self.session.peek_every is None
        return wanted

    def _free_queues(self) -> list[str]:
        return [queue for group in self.groups if group.has_free for queue in group.queues]

    def _back_off(self, error: EngineUnavailable) -> None:
        self._backoff.failed(error)
        self._wait = self._backoff.left
        self.sleeper.forget()

    def _gave_unknown_back(self) -> bool:
        """A claim may have gone through although its answer never came: such jobs are given back, unstarted. False:
        the database does not answer yet. That it does is not said before a tick went through: one that is read-only
        answers this question.
        """
        try:
            leases = self.session.my_leases()
        except EngineUnavailable as error:
            self._back_off(error)
            return False
        held = {(run.job.id, run.job.token) for _, run in self.held.snapshot()}
        held |= {(outcome.job_id, outcome.token) for outcome in self._unsettled}
        self._unsettled += [
            Rescheduled(job_id=job_id, token=token, delay=timedelta(0), why="handed_back")
            for job_id, token in leases.items()
            if token is not None and (job_id, token) not in held
        ]
        return True

    # Tending

    def _tend(self) -> None:
        """What has to be looked at from time to time while jobs run."""
        for slots, run, outcome in self.overruns.look(self.held):
            self.dispatcher.give_up(slots, run, outcome)
        if self.overruns.stuck and not self._stopping.asked:
            logger.error(
                "%d handlers overran their time-out and have not ended since: ending this process.",
                self.overruns.stuck,
            )
            self._stopping.end()
        if not self._stopping.begun and (reason := self.recycling.reason(self._books.ended)):
            logger.info("Ending once the running jobs have ended: %s.", reason)
            self._stopping.retire(reason)
        for group in self.groups:
            if group.stale(STALE_SECONDS):
                self._give_unstarted_back(group)
        self._progress.write()

    def _give_unstarted_back(self, group: Slots) -> None:
        self._unsettled += [handed_back(run.job) for run in group.withdraw()]

    # Ending

    def _stop_further(self) -> None:
        match self._stopping.next_step(cancellable=self._cancellable()):
            case Step.BEGIN:
                logger.info("Stopping: no more claims; %d jobs are held.", len(self.held))
                for group in self.groups:
                    self._give_unstarted_back(group)
                self._leave_the_sleepers()
            case Step.CANCEL:
                for _, run in self.held.snapshot():
                    run.ask_to_stop("shutdown")
            case Step.HAND_BACK:
                self._hand_back()

    def _leave_the_sleepers(self) -> None:
        try:
            self.sleeper.leave()
        except EngineUnavailable as error:
            self._back_off(error)

    def _cancellable(self) -> bool:
        return self._stopping.asked and any(run.stop is not None and not run.ended for _, run in self.held.snapshot())

    def _hand_back(self) -> None:
        """The last statement before the end: what still runs goes to others, a little later, its attempt refunded."""
        for slots, run in self.held.snapshot():
            if slots.give_back(run):
                run.lost = self._left_behind = True
                logger.warning("Job %s (%s) has not ended in time and is handed back.", run.job.id, run.job.type)
                self._unsettled.append(handed_back(run.job, HAND_BACK_DELAY))

    def _finished(self) -> bool:
        if self._inbox or self._unsettled:
            return self._stopping.out_of_time
        if self._stopping.begun:
            return not len(self.held)
        return self.drain is not None and not len(self.held) and not self._outstanding(self.drain)

    def _outstanding(self, horizon: timedelta) -> bool:
        queues = [queue for group in self.groups for queue in group.queues]
        try:
            return self.session.outstanding(queues, horizon)
        except EngineUnavailable as error:
            self._back_off(error)
            return True
