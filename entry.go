package delayed

import (
	"errors"
	"fmt"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/godelayed/delayed/internal/schedule"
	"github.com/godelayed/delayed/internal/wire"
)

// Entry declares a periodic entry: a task that is enqueued again and again, at the times of a cron spec or every so
// often. PeriodicEntry is the status of one. Declare entries in SchedulerConfig, or set them while programs run, with
// PeriodicControl.Set. Each tick becomes one task, with the id name@tick, the tick in ms since 1970.
type Entry struct {
	// Name is what the entry is known by in its queue, also after restarts and when everything else about it changes.
	// Up to 128 printable bytes without spaces, not beginning with @. Required.
	Name string
	// Spec sets when the entry ticks: five fields (minute, hour, day of month, month, day of week) as in "30 9 * *
	// mon-fri"; @hourly, @daily, @weekly, @monthly or @yearly; or @every and a duration, at least a second. Fields take
	// *, lists, ranges and steps (9-17/2), days and months also names of three letters; Sunday is 0. If day of month
	// and day of week are both restricted, either suffices. A prefix CRON_TZ=Europe/Berlin names the zone. Ticks of
	// @every are counted from From, or else from 1970, so that restarts do not shift them: @every 1h is each full hour
	// in UTC. Required.
	Spec string
	// Zone is the time zone of the fields, such as Europe/Berlin. Defaults to that of a CRON_TZ= prefix of Spec, or
	// else to UTC. A prefix that names another zone than Zone is an error.
	Zone string
	// Task is what is enqueued: what Call, NewGoTask or NewPyTask returned. Required in declarations; for
	// PeriodicControl.Set nil keeps the task and options that the entry has.
	Task *Task
	// Options apply to each task of the entry, as those of Queue.With do. In, At, Debounce, Deadline, RetryUntil,
	// Front, TaskID, Group, Unique, UniqueKey, UntilStart and OnConflict are refused: the entry says when its tasks run
	// and whether they may overlap.
	Options []Option

	// SkipClockGap leaves out ticks at times that the zone's clocks leave out, as when summer time begins. By default
	// such a tick comes at the first moment after them.
	SkipClockGap bool
	// RepeatClockOverlap lets the entry tick both times when the clocks show a time twice, as when summer time ends. By
	// default they run at the first of both.
	//
	// This and SkipClockGap concern entries that name hours. Those whose hour field is * tick whenever the clock shows
	// a time that the other fields allow; @every knows no clocks at all.
	RepeatClockOverlap bool
	// CatchUp is how many missed ticks are enqueued late: the latest ones, in their order, at most 100. Ticks are
	// missed when no scheduler ran, or Redis was away, for more than 30 s. Defaults to 1; negative: none.
	CatchUp int
	// Overlap decides what happens when the entry ticks while its previous task is not over: pending, running or
	// waiting for a retry. Defaults to OverlapAllow.
	Overlap Overlap
	// Jitter postpones each tick by up to so much, by a time that differs between ticks and is always the same for one
	// tick. At most 1 h.
	Jitter time.Duration
	// From and Until are the first moment at which the entry may tick, and the one from which on it does not. Zero: no
	// bound.
	From, Until time.Time
}

// Overlap decides what happens when an entry ticks while its previous task is not over: the task holds a lock until its
// end, for 24 h at most.
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

// dst returns SkipClockGap and RepeatClockOverlap of an entry as a value of package schedule.
func dst(skipGap, repeatOverlap bool) (policy schedule.DST) {
	if skipGap {
		policy |= schedule.DSTSkipMissing
	}
	if repeatOverlap {
		policy |= schedule.DSTRunTwice
	}
	return policy
}

// define checks an entry and returns its definition. For an entry without a task, Message and Relative are missing.
func (e *Entry) define(q *Queue, shortest time.Duration) (d schedule.Definition, err error) {
	d = schedule.Definition{
		Spec: e.Spec, Zone: e.Zone, DST: dst(e.SkipClockGap, e.RepeatClockOverlap),
		Missed: max(e.CatchUp, schedule.MissedSkip), Overlap: schedule.Overlap(e.Overlap), Jitter: e.Jitter,
		From: e.From, Until: e.Until,
	}
	if err := d.Normalize(e.Name, shortest); err != nil {
		return d, err
	}
	bad := func(format string, args ...any) error {
		return fmt.Errorf("delayed: periodic entry %q: %w", e.Name, fmt.Errorf(format, args...))
	}
	if e.Task == nil {
		if len(e.Options) > 0 || q.options.given {
			return d, bad("it has options but no task: they belong to one")
		}
		return d, nil
	}
	if d.Message, d.Relative, err = e.Task.template(q.With(e.Options...)); err != nil {
		return d, bad("%w", err)
	}
	msg, err := wire.Parse(d.Message, wire.Default)
	if err != nil {
		return d, bad("%w", err)
	}
	if msg.Kind == wire.Py && e.Overlap != OverlapAllow {
		return d, bad("%s: a Python task of a legacy queue carries no id, so that nobody knows when it is over: "+
			"leave out Overlap", msg.Path)
	}
	return d, nil
}

// template returns the message of t for a queue, without id and time, and which times in it are relative to the time of
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
	// Encode the options for two times: those that differ are relative to the present.
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
		relative = schedule.RelativeTimes(x, y, apart)
		switch {
		case x.Group != "":
			return nil, 0, errors.New("the option Group: ticks are not gathered: leave it out")
		case x.Deadline != 0 || x.RetryUntil != 0:
			return nil, 0, errors.New(
				"the options Deadline and RetryUntil: one moment cannot hold for all ticks: use " +
					"TTL, Timeout or MaxRetry")
		}
	}
	message, err = finishMessage(nil, &msg)
	return message, relative, err
}

// bare returns the message of t for a queue, without id and time.
func (t *Task) bare(q *Queue, nowMs int64) (msg wire.Message, err error) {
	var ref Ref
	raw, err := t.forQueue(q).appendMessage(nil, q, nowMs, &ref, nil)
	if err != nil {
		return msg, err
	}
	msg, err = wire.Parse(raw, wire.WorkerLimits)
	msg.Meta.ID, msg.Meta.EnqueuedAt = "", 0
	return msg, err
}

// SchedulerConfig configures a scheduler. Only Queue is required.
type SchedulerConfig struct {
	// Queue is where the entries are kept and their tasks enqueued. Required.
	Queue string
	// Owner names the program, or the service of several programs, whose code declares Entries. Programs that declare
	// the same entries have the same Owner; all others need another one, because a scheduler removes the entries of its
	// Owner that its own code does not declare. Up to 128 bytes. Required with Entries.
	Owner string
	// Entries are those that the code declares. When the scheduler starts it writes them to Redis: it creates new ones,
	// updates changed ones, and removes those that the same Owner has declared before and that are no longer among
	// Entries. Entries of other owners, and those set with PeriodicControl.Set, stay. If another owner has declared a
	// name, its entry stays, and the log says so. Changes made at run time stay until the declaration changes. With no
	// Entries and no Owner, no entry is written or removed. With an Owner but no Entries, all entries of that Owner are
	// removed.
	Entries []Entry
	// Version keeps an old program, started while a new one is being rolled out, from undoing what the new one has
	// declared: nothing is declared once Redis knows a higher version of the same Owner. A counter of migrations or the
	// time of the build will do. Defaults to 0: whichever program starts last is right.
	Version int64
	// Logger receives the log of the scheduler. Defaults to logrus's standard logger.
	Logger logrus.FieldLogger
}
