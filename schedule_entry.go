package delayed

import (
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/godelayed/delayed/internal/schedule"
	"github.com/godelayed/delayed/internal/wire"
)

const (
	// maxEntryName bounds the name of a periodic entry, in bytes. The ids of its tasks begin with it.
	maxEntryName = 128
	// maxMissed bounds the missed ticks that are made up for.
	maxMissed = 100
	// maxJitter bounds the jitter of ticks.
	maxJitter = time.Hour
)

// Entry is a task that is enqueued again and again: at the times of a cron spec, or every so often. Declare entries in
// SchedulerConfig, or set them while programs run, with Periodic.Set. Each tick becomes one task, with the id
// name@tick, the tick in ms since 1970.
type Entry struct {
	// Name is what the entry is known by in its queue, also after restarts and when everything else about it changes.
	// Up to 128 printable bytes without spaces, not beginning with @. Required.
	Name string
	// Spec says when the entry ticks: five fields (minute, hour, day of month, month, day of week) as in "30 9 * *
	// mon-fri"; @hourly, @daily, @weekly, @monthly or @yearly; or @every and a duration, at least a second. A prefix
	// CRON_TZ=Europe/Berlin names the zone. Ticks of @every are counted from From, or else from 1970, so that restarts
	// do not shift them: @every 1h is each full hour in UTC. Required.
	Spec string
	// Zone is the time zone of the fields, such as Europe/Berlin. Defaults to UTC.
	Zone string
	// Task is what is enqueued: what Call, NewGoTask or NewPyTask returned. Required in declarations; for Periodic.Set
	// nil keeps the task and options that the entry has.
	Task *Task
	// Options hold for each task of the entry, as those of Queue.With do. What says when or under which id a task runs
	// is refused.
	Options []Option

	// DST says what happens to ticks at times that the zone's clocks leave out or show twice. The zero value runs each
	// once.
	DST DST
	// Missed says what happens after no scheduler ran, or Redis was away, for more than 30 s: so many of the ticks in
	// that time are enqueued late, the latest ones in their order, at most 100. 0 stands for MissedLatest, MissedSkip
	// for none. Ticks that are less than 30 s late have not been missed.
	Missed int
	// Overlap says what happens when the entry ticks while its previous task is not over: pending, running or waiting
	// for a retry. Defaults to OverlapAllow.
	Overlap Overlap
	// Jitter delays each tick by up to so much, by a different time for each but always the same one for the same tick.
	// At most 1 h.
	Jitter time.Duration
	// From and Until are the first moment at which the entry may tick, and the one from which on it does not. Zero: no
	// bound.
	From, Until time.Time
}

// Values of Entry.Missed; others are numbers of ticks.
const (
	MissedSkip   = -1 // enqueues no tick that was missed
	MissedLatest = 1  // enqueues the latest tick that was missed
)

// Overlap says what happens when an entry ticks while its previous task is not over. Whether it is, Redis knows by a
// lock that the task holds until its end, for 24 h at most.
type Overlap uint8

const (
	// OverlapAllow enqueues the tick all the same.
	OverlapAllow Overlap = iota
	// OverlapSkip leaves the tick out.
	OverlapSkip
	// OverlapQueue enqueues the tick once the previous task is over. One waits; further ticks are left out.
	OverlapQueue
)

// String returns the policy's name.
func (o Overlap) String() string {
	if int(o) < len(overlapNames) {
		return overlapNames[o]
	}
	return fmt.Sprintf("Overlap(%d)", uint8(o))
}

var overlapNames = [...]string{"allow", "skip", "queue"}

// checkEntryName says why a name cannot be an entry's.
func checkEntryName(name string) error {
	switch {
	case name == "":
		return errors.New("delayed: periodic entry without a name: give it one that stays")
	case len(name) > maxEntryName:
		return fmt.Errorf("delayed: name of a periodic entry of %d bytes: expected at most %d", len(name), maxEntryName)
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

// definition is an entry as it is kept: what of it says when to do what.
type definition struct {
	spec, zone  string
	dst         DST
	missed      int
	overlap     Overlap
	jitter      time.Duration
	from, until time.Time
	message     []byte // a message without id and time
	relative    int64  // which times in it count from the tick: bits of relativeExpiry …
}

// Bits of definition.relative.
const (
	relativeExpiry = 1 << iota
	relativeDeadline
	relativeRetryUntil
)

// define checks an entry and returns it as it is kept. Of an entry without a task, message and relative are missing.
func (e *Entry) define(q *Queue, shortest time.Duration) (d definition, err error) {
	if err := checkEntryName(e.Name); err != nil {
		return d, err
	}
	bad := func(format string, args ...any) error {
		return fmt.Errorf("delayed: periodic entry %q: %w", e.Name, fmt.Errorf(format, args...))
	}
	d = definition{
		spec: strings.TrimSpace(e.Spec), zone: e.Zone, dst: e.DST, missed: e.Missed, overlap: e.Overlap,
		jitter: e.Jitter.Truncate(time.Millisecond), from: wholeMs(e.From), until: wholeMs(e.Until),
	}
	if d.missed == 0 {
		d.missed = MissedLatest
	}
	switch {
	case d.missed < MissedSkip || d.missed > maxMissed:
		return d, bad("Missed is %d: expected MissedSkip or 1 to %d", e.Missed, maxMissed)
	case e.DST > DSTSkipMissing|DSTRunTwice:
		return d, bad("DST is %d: expected DSTSkipMissing, DSTRunTwice, both or none", e.DST)
	case int(e.Overlap) >= len(overlapNames):
		return d, bad("Overlap is %d: expected OverlapAllow, OverlapSkip or OverlapQueue", e.Overlap)
	case e.Jitter < 0 || e.Jitter > maxJitter || e.Jitter > 0 && e.Jitter < time.Millisecond:
		return d, bad("Jitter is %v: expected 1ms to %v, or 0 for none", e.Jitter, maxJitter)
	case !e.From.IsZero() && (e.From.UnixMilli() < 0 || e.From.Year() > maxYear):
		return d, bad("From is %v: expected a time from 1970 up to the year 9999", e.From)
	case !e.Until.IsZero() && (e.Until.UnixMilli() <= 0 || e.Until.Year() > maxYear):
		return d, bad("Until is %v: expected a time from 1970 up to the year 9999", e.Until)
	case !e.From.IsZero() && !e.Until.IsZero() && !e.From.Before(e.Until):
		return d, bad("Until is %v: expected a time after From, %v", e.Until, e.From)
	}
	t, err := d.timetable(e.Name)
	if err != nil {
		return d, bad("%w", err)
	}
	if t.every > 0 && t.every < shortest {
		return d, bad("the spec %q: expected at least %v after @every", e.Spec, shortest)
	}
	if e.Task == nil {
		if len(e.Options) > 0 || q.options.given {
			return d, bad("it has options but no task: they belong to one")
		}
		return d, nil
	}
	if d.message, d.relative, err = e.Task.template(q.With(e.Options...)); err != nil {
		return d, bad("%w", err)
	}
	msg, err := wire.Parse(d.message, wire.Default)
	if err != nil {
		return d, bad("%w", err)
	}
	if msg.Kind == wire.Py && d.overlap != OverlapAllow {
		return d, bad("%s: a Python task of a legacy queue carries no id, so that nobody knows when it is over: "+
			"leave out Overlap", msg.Path)
	}
	return d, nil
}

// wholeMs is a time as Redis keeps it.
func wholeMs(t time.Time) time.Time {
	if t.IsZero() {
		return t
	}
	return time.UnixMilli(t.UnixMilli()).UTC()
}

// timetable says when the entry with the definition ticks.
func (d *definition) timetable(name string) (*timetable, error) {
	t, err := newTimetable(d.spec, d.zone, d.dst)
	if err != nil {
		return nil, err
	}
	t.name, t.jit, t.from, t.until = name, d.jitter, d.from, d.until
	return t, nil
}

// ticksAs says whether two definitions tick at the same times.
func (d *definition) ticksAs(o *definition) bool {
	return d.spec == o.spec && d.zone == o.zone && d.dst == o.dst && d.jitter == o.jitter && d.from.Equal(o.from) &&
		d.until.Equal(o.until)
}

// template returns the message of t for a queue, without id and time, and which times in it count from the moment of
// enqueueing.
func (t *Task) template(q *Queue) (message []byte, relative int64, err error) {
	o := &q.options
	switch {
	case q.optErr != nil:
		return nil, 0, q.optErr
	case t.err != nil:
		return nil, 0, t.err
	case o.later:
		return nil, 0, errors.New("the options In and At say when a task runs, which is what the spec says: leave " +
			"them out, or use Jitter")
	case o.id != nil:
		return nil, 0, errors.New("the option TaskID: each tick has an id of its own, name@tick: leave it out")
	case len(t.locks)+len(o.locks) > 0:
		return nil, 0, errors.New("the task is unique, by an option or by its function: what keeps runs of an entry " +
			"apart is its Overlap: leave Unique out")
	case o.front:
		return nil, 0, errors.New("the option Front: ticks join the end of the queue: leave it out")
	}
	// Told two times, an option that counts from the present shows itself.
	const apart = 1 << 40
	msg, err := t.bare(q, 0)
	if err != nil {
		return nil, 0, err
	}
	moved, err := t.bare(q, apart)
	if err != nil {
		return nil, 0, err
	}
	if x, y := msg.Meta.Extra, moved.Meta.Extra; x != nil {
		for bit, times := range map[int64][2]int64{
			relativeExpiry: {x.Expiry, y.Expiry}, relativeDeadline: {x.Deadline, y.Deadline},
			relativeRetryUntil: {x.RetryUntil, y.RetryUntil},
		} {
			if times[1]-times[0] == apart {
				relative |= bit
			}
		}
		if x.Group != "" {
			return nil, 0, errors.New("the option Group: ticks are not gathered: leave it out")
		}
	}
	message, err = finishMessage(nil, &msg)
	return message, relative, err
}

// bare returns the message of t for a queue, without id and time.
func (t *Task) bare(q *Queue, nowMs int64) (msg wire.Message, err error) {
	var ref Ref
	raw, err := t.on(q).appendMessage(nil, q, nowMs, &ref, nil)
	if err != nil {
		return msg, err
	}
	msg, err = wire.Parse(raw, wire.WorkerLimits)
	msg.Meta.ID, msg.Meta.EnqueuedAt = "", 0
	return msg, err
}

// taskAt returns the message of one task of the entry. An empty lock means that it holds none.
func (d *definition) taskAt(id, lock string, now time.Time) ([]byte, error) {
	msg, err := wire.Parse(d.message, wire.WorkerLimits)
	if err != nil {
		return nil, err
	}
	if msg.Kind != wire.GoExtended && msg.Kind != wire.PyExtended {
		return d.message, nil
	}
	ms := now.UnixMilli()
	msg.Meta.ID, msg.Meta.EnqueuedAt = id, ms
	if d.relative != 0 || lock != "" {
		var x wire.Extra
		if msg.Meta.Extra != nil {
			x = *msg.Meta.Extra
		}
		for bit, field := range map[int64]*int64{
			relativeExpiry: &x.Expiry, relativeDeadline: &x.Deadline,
			relativeRetryUntil: &x.RetryUntil,
		} {
			if d.relative&bit != 0 {
				*field += ms
			}
		}
		if lock != "" {
			x.Lock, x.LockLife = lock, schedule.OverlapLife.Milliseconds()
		}
		msg.Meta.Extra = &x
	}
	return msg.Append(nil), nil
}

// path returns the path of the entry's function.
func (d *definition) path() string {
	msg, err := wire.Parse(d.message, wire.WorkerLimits)
	if err != nil {
		return ""
	}
	return strings.Clone(msg.Path)
}
