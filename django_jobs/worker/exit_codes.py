"""What the end of a worker process says to whoever started it. Death by a signal is the system's to tell."""

DONE = 0
STUCK = 70  # handlers overran their time-out and hold threads; of a supervisor: a process of its ended badly when told to stop
STANDSTILL = 71  # a loop, a renewer or maintenance did not move any more
