"""The threads of a worker that see to the queues of one slot of a cluster, or to all queues of a server."""

from __future__ import annotations

import os
import socket
from typing import TYPE_CHECKING, NamedTuple

from .contact import Contact
from .heartbeat import Heartbeat
from .lane import Lane
from .link import Link
from .mover import Mover
from .scheduler import schedulers
from .status import Status
from .sweep import Sweeping
from .teller import Teller

if TYPE_CHECKING:
    from .worker import Worker


class Slot(NamedTuple):
    """The threads that look after some queues."""

    heartbeat: Heartbeat
    teller: Teller
    mover: Mover
    sweeping: Sweeping


def slot_of(w: Worker, lanes: list[Lane], archive_for: int) -> Slot:
    """Makes the threads for some queues of a worker. archive_for is in ms."""
    cfg, contact = w.config, Contact(w._life)
    mover = Mover(lanes, w._fetcher.nudge, w._intake.can_run, w._fetcher.signal, archive_for, w._judge.lines)
    mover.schedulers = schedulers(mover.link, cfg, w.registry, lanes)
    status = Status(w._executors, w.registry, cfg.legacy, cfg.plan(), lambda: w.state)

    def tell_status(link: Link) -> None:
        status.tell(link, lanes)

    tells = [tell_status, *(w._tallies[lane].tell for lane in lanes)]
    teller = Teller(lanes[0].store.source, tells)

    def beaten() -> None:
        w._beaten()
        teller.now()

    heartbeat = Heartbeat(lanes, w._life, f'{socket.gethostname()}:{os.getpid()}', contact, beaten)
    # Tasks that cannot start must not take the executors' places from those of other queues.
    heartbeat.on_refused = lambda lane: w._intake.give_back(w._executors.take_back(lane))
    heartbeat.on_registered = mover.now  # what the code declares may be lost with the last registration
    for lane in lanes:
        lane.beat = heartbeat.now
    sweeping = Sweeping(
        [lane.store for lane in lanes],
        w.id,
        w._life,
        cfg.seconds('sweep_interval'),
        contact,
        cfg.archive_max,
        archive_for,
    )
    return Slot(heartbeat, teller, mover, sweeping)
