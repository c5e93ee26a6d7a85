"""A module for workers that almost never look by themselves for due or parked tasks: they need signals."""

from godelayed.worker import mover

mover._INTERVAL = 3600.0
