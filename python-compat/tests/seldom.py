"""A module for workers that look by themselves as good as never for what is due or parked: somebody has to tell
them."""

from godelayed.worker import mover

mover._INTERVAL = 3600.0
