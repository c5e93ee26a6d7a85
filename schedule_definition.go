package delayed

import (
	"crypto/sha256"
	"fmt"
	"strings"
	"time"

	"github.com/godelayed/delayed/internal/wire"
)

const (
	// maxMissed bounds the missed ticks that are made up for.
	maxMissed = 100
	// maxJitter bounds the jitter of ticks.
	maxJitter = time.Hour
	// maxYearOfEntry bounds times, so that they are exact as numbers of milliseconds in Redis.
	maxYearOfEntry = 9999
)

// Values of definition.missed; others are numbers of ticks.
const (
	missedSkip   = -1 // enqueues no tick that was missed
	missedLatest = 1  // enqueues the latest tick that was missed
)

// overlapPolicy is what becomes of a tick while the previous task of the entry is not over. Its values are those of the
// Overlap of an Entry.
type overlapPolicy uint8

const (
	overlapAllow overlapPolicy = iota // enqueues it all the same
	overlapSkip                       // leaves it out
	overlapQueue                      // enqueues it once the previous task is over, and leaves out further ones
)

// definition is an entry as it is kept: what of it says when to do what.
type definition struct {
	spec, zone  string
	dst         dstPolicy
	missed      int // so many of the ticks that were missed are made up for, the latest ones; or missedSkip
	overlap     overlapPolicy
	jitter      time.Duration
	from, until time.Time
	message     []byte // a message without id and time
	relative    int64  // which times in it count from the tick: bits of relativeExpiry …
}

// normalize fills in what is left out, cuts times to the milliseconds that Redis keeps, and says what is wrong with the
// definition of the entry of a name. shortest is the least that @every may ask for.
func (d *definition) normalize(name string, shortest time.Duration) error {
	if err := checkEntryName(name); err != nil {
		return err
	}
	bad := func(format string, args ...any) error { return entryError(name, fmt.Errorf(format, args...)) }
	given := *d
	d.spec, d.jitter = strings.TrimSpace(d.spec), d.jitter.Truncate(time.Millisecond)
	d.from, d.until = wholeMs(d.from), wholeMs(d.until)
	if d.missed == 0 {
		d.missed = missedLatest
	}
	switch {
	case d.missed < missedSkip || d.missed > maxMissed:
		return bad("Missed is %d: expected MissedSkip or 1 to %d", given.missed, maxMissed)
	case d.dst > dstSkipMissing|dstRunTwice:
		return bad("DST is %d: expected DSTSkipMissing, DSTRunTwice, both or none", given.dst)
	case d.overlap > overlapQueue:
		return bad("Overlap is %d: expected OverlapAllow, OverlapSkip or OverlapQueue", given.overlap)
	case given.jitter < 0 || given.jitter > maxJitter || given.jitter > 0 && given.jitter < time.Millisecond:
		return bad("Jitter is %v: expected 1ms to %v, or 0 for none", given.jitter, maxJitter)
	case !given.from.IsZero() && (given.from.UnixMilli() < 0 || given.from.Year() > maxYearOfEntry):
		return bad("From is %v: expected a time from 1970 up to the year 9999", given.from)
	case !given.until.IsZero() && (given.until.UnixMilli() <= 0 || given.until.Year() > maxYearOfEntry):
		return bad("Until is %v: expected a time from 1970 up to the year 9999", given.until)
	case !given.from.IsZero() && !given.until.IsZero() && !given.from.Before(given.until):
		return bad("Until is %v: expected a time after From, %v", given.until, given.from)
	}
	t, err := d.timetable(name)
	if err != nil {
		return err
	}
	if t.every > 0 && t.every < shortest {
		return bad("the spec %q: expected at least %v after @every", given.spec, shortest)
	}
	return nil
}

// entryError says which entry an error is about.
func entryError(name string, err error) error {
	return fmt.Errorf("delayed: periodic entry %q: %w", name, err)
}

// wholeMs is a time as Redis keeps it.
func wholeMs(t time.Time) time.Time {
	if t.IsZero() {
		return t
	}
	return time.UnixMilli(t.UnixMilli()).UTC()
}

// timetable says when the entry of a name ticks that has the definition.
func (d *definition) timetable(name string) (*timetable, error) {
	t, err := newTimetable(d.spec, d.zone, d.dst)
	if err != nil {
		return nil, entryError(name, err)
	}
	t.name, t.jit, t.from, t.until = name, d.jitter, d.from, d.until
	return t, nil
}

// ticksAs says whether two definitions tick at the same times.
func (d *definition) ticksAs(o *definition) bool {
	return d.spec == o.spec && d.zone == o.zone && d.dst == o.dst && d.jitter == o.jitter && d.from.Equal(o.from) &&
		d.until.Equal(o.until)
}

// digest tells definitions apart.
func (d *definition) digest() []byte {
	sum := sha256.Sum256(d.encode())
	return sum[:8]
}

// encode returns the definition as MessagePack: the same bytes for the same definition. What has its default is left
// out.
func (d *definition) encode() []byte {
	var body []byte
	n := 0
	put := func(key string) {
		n++
		body = wire.AppendString(body, key)
	}
	number := func(key string, v, initial int64) {
		if v != initial {
			put(key)
			body = wire.AppendInt(body, v)
		}
	}
	moment := func(key string, t time.Time) {
		if !t.IsZero() {
			put(key)
			body = wire.AppendInt(body, t.UnixMilli())
		}
	}
	put("spec")
	body = wire.AppendString(body, d.spec)
	if d.zone != "" {
		put("zone")
		body = wire.AppendString(body, d.zone)
	}
	number("dst", int64(d.dst), 0)
	number("missed", int64(d.missed), missedLatest)
	number("overlap", int64(d.overlap), 0)
	number("jitter", d.jitter.Milliseconds(), 0)
	moment("from", d.from)
	moment("until", d.until)
	number("relative", d.relative, 0)
	put("task")
	body = wire.AppendBin(body, d.message)
	return append(wire.AppendMapHeader(nil, n), body...)
}
