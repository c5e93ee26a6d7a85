package delayed

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/godelayed/delayed/internal/redisstore"
	"github.com/godelayed/delayed/internal/schedule"
	"github.com/godelayed/delayed/internal/wire"
)

// ErrNoEntry means that a queue has no periodic entry with that name.
var ErrNoEntry = errors.New("delayed: there is no such periodic entry")

// errConflict means that other programs kept changing the entry.
var errConflict = errors.New("delayed: the periodic entry is being changed by others: try again")

// PeriodicControl controls the periodic entries of a queue, from any process. Schedulers notice changes at once, or
// within five seconds if they may not subscribe to channels. It is safe for concurrent use.
type PeriodicControl struct {
	queue    *Queue
	shortest time.Duration
}

// Periodic returns the control of the queue's periodic entries. Options of With, such as Header, apply to the tasks of
// entries that Set defines; Entry.Options take precedence. Headers of QueueConfig.Inject are not added to these tasks.
func (q *Queue) Periodic() *PeriodicControl {
	must(q.checkMade())
	own := *q
	own.inject = nil
	return &PeriodicControl{queue: &own, shortest: schedule.ShortestEvery}
}

// PeriodicEntry is the status of a periodic entry, as PeriodicControl.List returns it. Entry declares one.
type PeriodicEntry struct {
	Name               string
	Spec, Zone         string
	Function           string // path of the function that its task calls
	SkipClockGap       bool
	RepeatClockOverlap bool
	CatchUp            int // as in Entry; -1: none
	Overlap            Overlap
	Jitter             time.Duration
	From, Until        time.Time
	// SchedulerConfig.Owner of the code that declares it; "" if it was set with PeriodicControl.Set
	Owner    string
	Paused   bool
	Next     time.Time // the next tick, without jitter; zero if there is none or the entry is paused
	Previous time.Time // the last tick that was enqueued or left out; until there is one, when the entry was made
	Waiting  bool      // a tick waits for the end of the previous task
}

// Ticks returns the next ticks of the entry, at most n, without jitter: Next, and those after it, as long as nobody
// changes the entry. There are none while it is paused, and only Next if this machine does not know the entry's zone.
func (e *PeriodicEntry) Ticks(n int) []time.Time {
	if e.Next.IsZero() || n < 1 {
		return nil
	}
	table, err := e.timetable()
	if err != nil {
		return []time.Time{e.Next}
	}
	var ticks []time.Time
	for at := e.Next; !at.IsZero() && len(ticks) < n; at = table.Next(at) {
		ticks = append(ticks, at)
	}
	return ticks
}

// DelayOf returns by how long the entry's Jitter postpones one of its ticks.
func (e *PeriodicEntry) DelayOf(tick time.Time) time.Duration {
	table, err := e.timetable()
	if err != nil {
		return 0
	}
	return table.Due(tick).Sub(tick)
}

// timetable returns when the entry ticks.
func (e *PeriodicEntry) timetable() (*schedule.Timetable, error) {
	d := schedule.Definition{
		Spec: e.Spec, Zone: e.Zone, DST: dst(e.SkipClockGap, e.RepeatClockOverlap), Jitter: e.Jitter, From: e.From,
		Until: e.Until,
	}
	return d.Timetable(e.Name)
}

// PeriodicRun is a line of an entry's history: what became of a tick.
type PeriodicRun struct {
	Tick time.Time // when it was due, without jitter
	At   time.Time // when this happened, by the clock of Redis
	ID   string    // of the task; "" when Skipped is "missed"
	// Skipped is "" if the tick was enqueued; "missed" if this tick was missed, and with it all ticks after that of the
	// next line, which is older; "overlap" if it was left out because the previous task was not over; "queued" if it
	// waits for that.
	Skipped string
}

// Set creates an entry, or changes the one that has its name; a new spec, zone or bound applies from now on, and ticks
// before now are not made up for. A paused entry stays paused. If the entry is declared in code, the change stays until
// its declaration changes.
func (p *PeriodicControl) Set(ctx context.Context, e Entry) error {
	if err := p.check(ctx); err != nil {
		return err
	}
	def, err := e.define(p.queue, p.shortest)
	if err != nil {
		return err
	}
	if err := p.settleForm(ctx, e.Task); err != nil {
		return err
	}
	err = p.change(ctx, e.Name, true, func(r *schedule.Record, now time.Time) error {
		switch {
		case def.Message != nil:
		case r.Was.Raw == nil:
			return fmt.Errorf("delayed: periodic entry %q is new and has no task: expected what Call, NewGoTask or "+
				"NewPyTask returned", e.Name)
		default:
			def.Message, def.Relative = r.Def.Message, r.Def.Relative
		}
		return r.Define(def, now)
	})
	if err == nil {
		p.queue.announce(ctx, time.Now())
	}
	return err
}

// settleForm settles the form of the queue's Python tasks before the first one.
func (p *PeriodicControl) settleForm(ctx context.Context, t *Task) error {
	if t == nil || !t.msg.Python() {
		return nil
	}
	return p.queue.settleForm(ctx)
}

// Remove removes an entry and its history. Tasks that it has enqueued stay. An entry that is declared in code comes
// back when a program that declares it starts: Pause it instead. The error wraps ErrNoEntry if there is none.
func (p *PeriodicControl) Remove(ctx context.Context, name string) error {
	if err := p.check(ctx); err != nil {
		return err
	}
	for range conflicts {
		was, err := p.queue.store.Entry(ctx, name)
		if err != nil {
			return err
		}
		if was.Raw == nil {
			return noEntry(name)
		}
		if err = p.queue.store.SetEntry(ctx, was, nil, time.Time{}); !errors.Is(err, redisstore.ErrEntryChanged) {
			return err
		}
	}
	return errConflict
}

// Pause makes an entry tick no more until Resume, also beyond restarts and changes of its declaration. A tick that
// waits for the previous task is left out. The error wraps ErrNoEntry if there is none.
func (p *PeriodicControl) Pause(ctx context.Context, name string) error {
	return p.change(ctx, name, false, func(r *schedule.Record, _ time.Time) error {
		r.Pause()
		return nil
	})
}

// Resume ends a pause. Ticks of the meantime are not made up for. The error wraps ErrNoEntry if there is no such entry.
func (p *PeriodicControl) Resume(ctx context.Context, name string) error {
	return p.change(ctx, name, false, func(r *schedule.Record, now time.Time) error { return r.Resume(now) })
}

// conflicts is how often to try a change while other programs change the entry.
const conflicts = 100

// change reads an entry, calls edit and writes the entry back. The record is empty for a new entry.
func (p *PeriodicControl) change(
	ctx context.Context, name string, create bool, edit func(r *schedule.Record, now time.Time) error,
) error {
	return p.attempt(ctx, name, create, func(r *schedule.Record, now time.Time) error {
		if err := edit(r, now); err != nil {
			return err
		}
		raw := r.Encode()
		if bytes.Equal(raw, r.Was.Raw) {
			return nil
		}
		due, err := r.Due()
		if err != nil {
			return err
		}
		if err = p.queue.store.SetEntry(ctx, r.Was, raw, due); err == nil {
			p.notifySchedulers(ctx)
		}
		return err
	})
}

// attempt reads an entry and calls do with it, again and again while other programs change the entry before do writes.
func (p *PeriodicControl) attempt(
	ctx context.Context, name string, create bool, do func(r *schedule.Record, now time.Time) error,
) error {
	if err := p.check(ctx); err != nil {
		return err
	}
	for range conflicts {
		was, err := p.queue.store.Entry(ctx, name)
		if err != nil {
			return err
		}
		r := &schedule.Record{Was: was}
		if was.Raw != nil {
			if r, err = schedule.Decode(was); err != nil {
				return err
			}
		} else if !create {
			return noEntry(name)
		}
		now, err := p.queue.store.Time(ctx)
		if err != nil {
			return err
		}
		if err := do(r, now); !errors.Is(err, redisstore.ErrEntryChanged) {
			return err
		}
	}
	return errConflict
}

// notifySchedulers makes schedulers look at once. Where Redis does not allow it, they look within five seconds.
func (p *PeriodicControl) notifySchedulers(ctx context.Context) {
	_ = p.queue.store.Signal(ctx, periodicSignal)
}

// periodicSignal is the message to schedulers when entries change.
const periodicSignal = "periodic"

func noEntry(name string) error {
	return fmt.Errorf("%w: %q", ErrNoEntry, name)
}

// ignoreChange returns nil if another program has changed an entry meanwhile, which needs no second try.
func ignoreChange(err error) error {
	if errors.Is(err, redisstore.ErrEntryChanged) {
		return nil
	}
	return err
}

// numberOf returns the number that a field holds; 0 if there is none.
func numberOf(v schedule.EntryValue) int64 {
	n, err := strconv.ParseInt(string(v.Raw), 10, 64)
	if err != nil {
		return 0
	}
	return n
}

// RunNow enqueues the entry's task now, whether it is paused or not, and leaves its ticks as they are. While the
// previous task is not over, an entry with OverlapSkip or OverlapQueue refuses with a *DuplicateError that names that
// task. The error wraps ErrNoEntry if there is no such entry.
func (p *PeriodicControl) RunNow(ctx context.Context, name string) (ref *Ref, err error) {
	err = p.attempt(ctx, name, false, func(r *schedule.Record, now time.Time) error {
		id := schedule.TickID(name, now) + "-" + wire.NewTaskID()[:8]
		plan, err := r.PlanRun(id, now)
		if err != nil {
			return err
		}
		_, err = p.queue.store.Tick(ctx, plan)
		if held := (*redisstore.TakenError)(nil); errors.As(err, &held) {
			return fmt.Errorf("delayed: periodic entry %q: its previous task is not over: %w", name, duplicate(err))
		}
		ref = p.queue.Ref(id)
		return err
	})
	if err != nil {
		return nil, err
	}
	return ref, nil
}

// List returns all entries, by name. Those that this version cannot read are left out, and the error says which.
func (p *PeriodicControl) List(ctx context.Context) ([]PeriodicEntry, error) {
	if err := p.check(ctx); err != nil {
		return nil, err
	}
	values, err := p.queue.store.Entries(ctx)
	if err != nil {
		return nil, err
	}
	var all []PeriodicEntry
	var errs []error
	for _, v := range values {
		if v.Name[0] == '@' {
			continue
		}
		r, err := schedule.Decode(v)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		d := &r.Def
		e := PeriodicEntry{
			Name: v.Name, Spec: d.Spec, Zone: d.Zone, Function: d.Path(),
			SkipClockGap: d.DST&schedule.DSTSkipMissing != 0, RepeatClockOverlap: d.DST&schedule.DSTRunTwice != 0,
			CatchUp: d.Missed, Overlap: Overlap(d.Overlap), Jitter: d.Jitter, From: d.From, Until: d.Until,
			Owner: r.Owner, Paused: r.Paused, Previous: r.Prev, Waiting: !r.Queued.IsZero(),
		}
		if !r.Paused {
			e.Next = r.Next
		}
		if loc, err := schedule.LoadZone(d.Zone); err == nil {
			e.Next, e.Previous = inZone(e.Next, loc), inZone(e.Previous, loc)
		}
		all = append(all, e)
	}
	slices.SortFunc(all, func(a, b PeriodicEntry) int { return cmp.Compare(a.Name, b.Name) })
	return all, errors.Join(errs...)
}

func inZone(t time.Time, loc *time.Location) time.Time {
	if t.IsZero() {
		return t
	}
	return t.In(loc)
}

// History returns what became of the last ticks of an entry, at most 100 lines, the latest first. It outlives restarts
// and changes of the entry, and goes when the entry is removed.
func (p *PeriodicControl) History(ctx context.Context, name string) ([]PeriodicRun, error) {
	if err := p.check(ctx); err != nil {
		return nil, err
	}
	lines, err := p.queue.store.HistoryOf(ctx, name)
	if err != nil {
		return nil, err
	}
	runs := make([]PeriodicRun, 0, len(lines))
	for _, line := range lines {
		parts := strings.SplitN(line, " ", 4)
		if len(parts) != 4 {
			return nil, fmt.Errorf("%w: history of %q: %q", redisstore.ErrReply, name, line)
		}
		tick, err1 := strconv.ParseInt(parts[0], 10, 64)
		at, err2 := strconv.ParseInt(parts[1], 10, 64)
		if err1 != nil || err2 != nil {
			return nil, fmt.Errorf("%w: history of %q: %q", redisstore.ErrReply, name, line)
		}
		run := PeriodicRun{Tick: time.UnixMilli(tick), At: time.UnixMilli(at), ID: parts[3], Skipped: parts[2]}
		if run.Skipped == schedule.TickEnqueued {
			run.Skipped = ""
		}
		runs = append(runs, run)
	}
	return runs, nil
}

// check returns an error if Redis cannot be asked for entries.
func (p *PeriodicControl) check(ctx context.Context) error {
	if p == nil || p.queue == nil {
		return errNoPeriodic
	}
	return checkContext(ctx)
}

var errNoPeriodic = errors.New("delayed: the *PeriodicControl is nil or zero: make it with Queue.Periodic")
