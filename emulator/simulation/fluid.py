"""Capacity shared by whatever uses it at once: transfers on lines, computations on a CPU.

Every job has an amount of work and needs all resources of its path at the same speed. Speeds are max-min fair
(progressive filling: Bertsekas and Gallager, Data Networks, section 6.5.2), and are worked out anew whenever a job
starts or ends. Between two such moments all runs at constant speed, so times are exact.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Hashable, Mapping, Sequence

# Work that is left over by rounding: what is done within a nanosecond is done.
TICK = 1e-9


@dataclass(eq=False)
class Job:
    """Work in progress; `done` fires when none is left."""

    left: float
    path: Sequence[Hashable]
    done: Any
    speed: float = 0.0


class Fluid:
    """Resources with their capacities (work a second), on a simpy environment."""

    def __init__(self, env: Any, capacity: Mapping[Hashable, float]) -> None:
        self._env = env
        self._capacity = capacity
        self._jobs: list[Job] = []
        self._since = 0.0
        self._round = 0

    def start(self, work: float, path: Sequence[Hashable]) -> Job:
        """Begin a job; wait for its `done`. Resources that are not in the capacities do not limit it."""
        limited = [resource for resource in path if resource in self._capacity]
        job = Job(work, limited, self._env.event())
        if not limited or work <= 0:
            job.done.succeed()
            return job
        self._advance()
        self._jobs.append(job)
        self._settle()
        return job

    def stop(self, job: Job) -> None:
        """Give up a job (its `done` never fires)."""
        if job in self._jobs:
            self._advance()
            self._jobs.remove(job)
            self._settle()

    def _advance(self) -> None:
        passed = self._env.now - self._since
        self._since = self._env.now
        for job in self._jobs:
            job.left -= job.speed * passed

    def _settle(self) -> None:
        """End what is done, share the capacity among the rest, and come back when the next one ends."""
        for job in [job for job in self._jobs if job.left <= job.speed * TICK]:
            self._jobs.remove(job)
            job.done.succeed()
        share(self._jobs, self._capacity)
        self._round += 1
        soonest = min((job.left / job.speed for job in self._jobs if job.speed), default=math.inf)
        if soonest < math.inf:
            number = self._round
            self._env.timeout(soonest).callbacks.append(lambda _event: self._wake(number))

    def _wake(self, number: int) -> None:
        if number == self._round:
            self._advance()
            self._settle()


def share(jobs: Sequence[Job], capacity: Mapping[Hashable, float]) -> None:
    """Set every job's max-min fair speed."""
    free: dict[Hashable, float] = {}
    users: dict[Hashable, list[Job]] = {}
    for job in jobs:
        for resource in job.path:
            free[resource] = capacity[resource]
            users.setdefault(resource, []).append(job)
    waiting = dict.fromkeys(jobs)
    while waiting:
        tightest = min(users, key=lambda resource: free[resource] / len(users[resource]))
        speed = free[tightest] / len(users[tightest])
        for job in users[tightest]:
            job.speed = speed
            del waiting[job]
            for resource in job.path:
                if resource != tightest:
                    free[resource] = max(0.0, free[resource] - speed)
                    users[resource].remove(job)
                    if not users[resource]:
                        del users[resource]
        del users[tightest]
