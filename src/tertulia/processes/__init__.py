"""Supervised child processes: each sees no secrets, has a time limit and ends with its parent.

The server's side                                  The process's side
child.ChildProcess.start ── the parent's pid ────▶ worker.begin: dies with the parent, yields to it
child.ChildProcess.within: kills it when too late  worker.reserve_stdout: keeps stdout for its answers
timers.IdleTimer: stops it when it is not used
child.ChildProcess.stop: ends it for good
"""
