"""What has happened to the tasks of one function in some time, as Redis keeps it: internal/metrics of the Go module
defines the bytes."""

from __future__ import annotations

BUCKETS = 168
_FORMAT = 1
_MOST = 1 << 60  # what one sample counts at most, so that sums do not overflow


class Durations:
    """A histogram. Four buckets stand for each doubling, from 4 µs on."""

    __slots__ = ('counts', 'total')

    def __init__(self) -> None:
        self.counts: dict[int, int] = {}
        self.total = 0  # µs

    def add(self, us: int) -> None:
        us = max(us, 0)
        bucket = us
        if us >= 4:
            octave = us.bit_length() - 3
            bucket = min(4 + 4 * octave + (us >> octave & 3), BUCKETS - 1)
        self.counts[bucket] = self.counts.get(bucket, 0) + 1
        self.total += us

    def merge(self, other: Durations) -> None:
        for bucket, n in other.counts.items():
            self.counts[bucket] = self.counts.get(bucket, 0) + n
        self.total += other.total

    def numbers(self) -> list[int]:
        """Returns the numbers that stand for it."""
        numbers, last = [self.total, len(self.counts)], 0
        for bucket in sorted(self.counts):
            numbers += [bucket - last, self.counts[bucket]]
            last = bucket
        return numbers


class Sample:
    """Counts of runs, and how long tasks waited and ran."""

    __slots__ = ('archived', 'failed', 'run', 'runs', 'wait')

    def __init__(self) -> None:
        self.runs = self.failed = self.archived = 0
        self.wait, self.run = Durations(), Durations()

    def merge(self, other: Sample) -> None:
        self.runs += other.runs
        self.failed += other.failed
        self.archived += other.archived
        self.wait.merge(other.wait)
        self.run.merge(other.run)

    def encode(self) -> bytes:
        out = bytearray([_FORMAT])
        for n in [self.runs, self.failed, self.archived, *self.wait.numbers(), *self.run.numbers()]:
            while n >= 0x80:
                out.append(n & 0x7F | 0x80)
                n >>= 7
            out.append(n)
        return bytes(out)

    def merge_encoded(self, raw: bytes) -> bool:
        """Adds an encoded sample, and returns whether raw is one. If not, nothing changes."""
        numbers = _numbers(raw)
        if numbers is None or len(numbers) < 3:
            return False
        other, rest = Sample(), iter(numbers)
        try:
            other.runs, other.failed, other.archived = next(rest), next(rest), next(rest)
            for d in (other.wait, other.run):
                d.total = next(rest)
                at = 0
                for _ in range(min(next(rest), BUCKETS + 1)):
                    at += next(rest)
                    if at >= BUCKETS:
                        return False
                    d.counts[at] = d.counts.get(at, 0) + next(rest)
        except StopIteration:
            return False
        if next(rest, None) is not None:
            return False
        self.merge(other)
        return True


def _numbers(raw: bytes) -> list[int] | None:
    if not raw or raw[0] != _FORMAT:
        return None
    numbers: list[int] = []
    n = shift = 0
    for byte in raw[1:]:
        n |= (byte & 0x7F) << shift
        shift += 7
        if n > _MOST or shift > 70:
            return None
        if byte < 0x80:
            numbers.append(n)
            n = shift = 0
    return None if shift else numbers
