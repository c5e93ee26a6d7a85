package schedule

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/godelayed/delayed/internal/wire"
)

const (
	// maxMissed bounds the missed ticks that are made up for.
	maxMissed = 100
	// maxJitter bounds the jitter of ticks.
	maxJitter = time.Hour
	// maxName bounds the name of a periodic entry, in bytes. The ids of its tasks begin with it.
	maxName = 128
	// maxYear bounds times, so that they are exact as numbers of milliseconds in Redis.
	maxYear = 9999
)

// Values of Definition.Missed; others are numbers of ticks.
const (
	MissedSkip   = -1 // enqueues no tick that was missed
	MissedLatest = 1  // enqueues the latest tick that was missed
)

// Overlap defines what happens to a tick while the previous task of the entry has not ended. It is the Overlap of the
// root package, with the same numbers.
type Overlap uint8

// Values of Overlap.
const (
	OverlapAllow Overlap = iota // enqueues the tick all the same
	OverlapSkip                 // leaves the tick out
	OverlapQueue                // enqueues the tick when the previous task has ended, and leaves out further ones
)

// Definition is the part of an entry that its author sets: when it ticks, and what is enqueued then.
type Definition struct {
	Spec, Zone  string
	DST         DST
	Missed      int // how many missed ticks are made up for, the latest ones; or MissedSkip
	Overlap     Overlap
	Jitter      time.Duration
	From, Until time.Time
	Message     []byte // a message without id and time
	Relative    int64  // which times in it count from the tick: bits of relativeExpiry …
}

// Normalize fills in defaults, cuts times to the milliseconds that Redis keeps, and returns what is wrong with the
// definition of the named entry. shortest is the shortest interval of @every.
func (d *Definition) Normalize(name string, shortest time.Duration) error {
	if err := checkName(name); err != nil {
		return err
	}
	bad := func(format string, args ...any) error { return entryError(name, fmt.Errorf(format, args...)) }
	given := *d
	d.Spec, d.Jitter = strings.TrimSpace(d.Spec), d.Jitter.Truncate(time.Millisecond)
	d.From, d.Until = wholeMs(d.From), wholeMs(d.Until)
	if d.Missed == 0 {
		d.Missed = MissedLatest
	}
	switch {
	case d.Missed < MissedSkip || d.Missed > maxMissed:
		return bad("Missed is %d: expected 1 to %d, or a negative number for none", given.Missed, maxMissed)
	case d.DST > DSTSkipMissing|DSTRunTwice:
		return bad("DST is %d: expected 0 to 3", given.DST)
	case d.Overlap > OverlapQueue:
		return bad("Overlap is %d: expected OverlapAllow, OverlapSkip or OverlapQueue", given.Overlap)
	case given.Jitter < 0 || given.Jitter > maxJitter || given.Jitter > 0 && given.Jitter < time.Millisecond:
		return bad("Jitter is %v: expected 1ms to %v, or 0 for none", given.Jitter, maxJitter)
	case !given.From.IsZero() && (given.From.UnixMilli() < 0 || given.From.Year() > maxYear):
		return bad("From is %v: expected a time from 1970 up to the year 9999", given.From)
	case !given.Until.IsZero() && (given.Until.UnixMilli() <= 0 || given.Until.Year() > maxYear):
		return bad("Until is %v: expected a time from 1970 up to the year 9999", given.Until)
	case !given.From.IsZero() && !given.Until.IsZero() && !given.From.Before(given.Until):
		return bad("Until is %v: expected a time after From, %v", given.Until, given.From)
	}
	t, err := d.Timetable(name)
	if err != nil {
		return err
	}
	if t.every > 0 && t.every < shortest {
		return bad("the spec %q: expected at least %v after @every", given.Spec, shortest)
	}
	return nil
}

// checkName returns an error if an entry cannot have that name.
func checkName(name string) error {
	switch {
	case name == "":
		return errors.New("delayed: periodic entry without a name: give it one that stays")
	case len(name) > maxName:
		return fmt.Errorf("delayed: name of a periodic entry of %d bytes: expected at most %d", len(name), maxName)
	case name[0] == '@':
		return fmt.Errorf("delayed: periodic entry %q: a name does not begin with @", name)
	}
	for _, r := range name {
		if !unicode.IsGraphic(r) || unicode.IsSpace(r) || r == utf8.RuneError {
			return fmt.Errorf("delayed: periodic entry %q: expected a name of printable characters without spaces",
				name)
		}
	}
	return nil
}

// entryError reports which entry an error is about.
func entryError(name string, err error) error {
	return fmt.Errorf("delayed: periodic entry %q: %w", name, err)
}

// wholeMs cuts a time to milliseconds, as Redis keeps it.
func wholeMs(t time.Time) time.Time {
	if t.IsZero() {
		return t
	}
	return time.UnixMilli(t.UnixMilli()).UTC()
}

// Timetable returns when an entry of that name ticks. The jitter depends on the name.
func (d *Definition) Timetable(name string) (*Timetable, error) {
	t, err := newTimetable(d.Spec, d.Zone, d.DST)
	if err != nil {
		return nil, entryError(name, err)
	}
	t.name, t.jitter, t.from, t.until = name, d.Jitter, d.From, d.Until
	return t, nil
}

// ticksAs reports whether two definitions tick at the same times.
func (d *Definition) ticksAs(o *Definition) bool {
	return d.Spec == o.Spec && d.Zone == o.Zone && d.DST == o.DST && d.Jitter == o.Jitter && d.From.Equal(o.From) &&
		d.Until.Equal(o.Until)
}

// digest identifies the definition.
func (d *Definition) digest() []byte {
	sum := sha256.Sum256(d.encode())
	return sum[:8]
}

// encode returns the definition as MessagePack: the same bytes for the same definition, without defaults.
func (d *Definition) encode() []byte {
	var w wire.MapWriter
	w.Begin(nil)
	w.Text("spec", d.Spec)
	w.Text("zone", d.Zone)
	w.Number("dst", int64(d.DST))
	if d.Missed != MissedLatest {
		w.Number("missed", int64(d.Missed))
	}
	w.Number("overlap", int64(d.Overlap))
	w.Number("jitter", d.Jitter.Milliseconds())
	w.Time("from", d.From)
	w.Time("until", d.Until)
	w.Number("relative", d.Relative)
	w.Bin("task", d.Message)
	return w.End()
}
