"""What the end of a worker process says to whoever started it. Death by a signal is the system's to tell."""

DONE = 0
# Handlers overran their time-out and hold threads. Of a supervisor: a process ended badly when told to stop.
STUCK = 70
# A loop, a renewer or maintenance did not move any more.
STANDSTILL = 71
