package delayed

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync/atomic"
	"time"
	"unicode/utf8"

	"github.com/godelayed/delayed/internal/engine/beat"
	"github.com/godelayed/delayed/internal/engine/move"
	"github.com/godelayed/delayed/internal/loop"
	"github.com/godelayed/delayed/internal/redisstore"
	"github.com/godelayed/delayed/internal/schedule"
)

const (
	// queuedCheck is how often a scheduler looks whether the task for which a tick waits has ended.
	queuedCheck = time.Second
	// maxOwner bounds SchedulerConfig.Owner, in bytes.
	maxOwner = 128
)

// Scheduler enqueues the tasks of a queue's periodic entries when they are due, by the clock of Redis. Any number of
// schedulers may run, beside workers (WorkerConfig.Schedulers) or by themselves: each tick is enqueued once, by
// whichever is first. All schedulers of a queue serve all its entries, also those that others declare.
type Scheduler struct {
	cfg        SchedulerConfig
	periodic   *PeriodicControl
	store      *redisstore.Store
	log        loop.Journal
	declared   []declaration
	started    atomic.Bool
	signals    *redisstore.Signals
	every      time.Duration // move.CheckInterval
	announcer  *beat.Announcer
	trouble    loop.Complaints
	lossy      loop.Complaints // about entries that Redis may have lost
	unservable loop.Complaints // about entries that this version cannot serve

	// Each declaration that changes entries writes a larger stamp beside them. generation is the stamp of what this
	// scheduler declares, latest the largest that it has seen: larger if another version of the program has declared
	// since.
	generation, latest int64
	unfinished         bool      // a declaration has failed, maybe after its stamp
	yielded            bool      // a lost declaration of another version was left to that version, once
	nothingAhead       bool      // at the last look, no entry had a time at which it ticks
	upheld, announceAt time.Time // when it last looked for lost entries; when to announce the queue next
}

// declaration is an entry that the code declares.
type declaration struct {
	name string
	def  schedule.Definition
	task *Task
}

// NewScheduler returns a scheduler, or everything that is wrong with cfg and its entries. It does not connect.
func NewScheduler(rdb *Store, cfg SchedulerConfig) (*Scheduler, error) {
	return newScheduler(rdb, cfg, schedule.ShortestEvery)
}

func newScheduler(rdb *Store, cfg SchedulerConfig, shortest time.Duration) (*Scheduler, error) {
	if err := rdb.check(); err != nil {
		return nil, fmt.Errorf("delayed: NewScheduler: %w", err)
	}
	if err := checkLogger("SchedulerConfig", cfg.Logger); err != nil {
		return nil, err
	}
	q, err := OpenQueue(cfg.Queue, rdb, QueueConfig{})
	if err != nil {
		return nil, fmt.Errorf("delayed: SchedulerConfig.Queue: %w", err)
	}
	q.store = redisstore.NewStore(rdb.loops, rdb.prefix, cfg.Queue) // never waits behind producers
	s := &Scheduler{
		cfg: cfg, periodic: &PeriodicControl{queue: q, shortest: shortest}, store: q.store,
		log:     loop.NewJournal(cfg.Logger).With("queue", cfg.Queue),
		signals: rdb.signals, every: move.CheckInterval,
	}
	s.announcer = beat.NewAnnouncer(rdb.registry, rdb.loops, map[string]bool{cfg.Queue: rdb.legacy},
		move.CheckInterval, s.log)
	f := faults{config: "SchedulerConfig"}
	f.unless(len(cfg.Entries) == 0 || cfg.Owner != "", "Owner", "missing",
		"the name of the service that declares the entries, so that others do not remove them")
	f.unless(len(cfg.Owner) <= maxOwner && utf8.ValidString(cfg.Owner), "Owner",
		fmt.Sprintf("%d bytes long", len(cfg.Owner)), fmt.Sprintf("at most %d in UTF-8", maxOwner))
	f.unless(cfg.Version == 0 || cfg.Version > 0 && cfg.Owner != "", "Version", cfg.Version,
		"0, or a positive number with an Owner")
	names := map[string]bool{}
	for i := range cfg.Entries {
		e := &cfg.Entries[i]
		def, err := e.define(q, shortest)
		switch {
		case err != nil:
		case def.Message == nil:
			err = fmt.Errorf("delayed: periodic entry %q has no task: expected what Call, NewGoTask or NewPyTask "+
				"returned", e.Name)
		case names[e.Name]:
			err = fmt.Errorf("delayed: periodic entry %q is declared twice: give each a name of its own", e.Name)
		}
		names[e.Name], f.errs = true, append(f.errs, err)
		s.declared = append(s.declared, declaration{e.Name, def, e.Task})
	}
	if err := errors.Join(f.errs...); err != nil {
		return nil, err
	}
	return s, nil
}

// Run declares the entries and enqueues what is due until ctx ends, and returns nil then. A second Run returns
// ErrClosed, and so does one whose handle on Redis is closed, before or meanwhile. While Redis is away it tries again,
// and carries on by itself; a server that runs no Lua scripts ends it at the start, with the server's answer.
func (s *Scheduler) Run(ctx context.Context) error {
	if s == nil || s.store == nil {
		return errNoSchedule
	}
	if err := checkContext(ctx); err != nil {
		return err
	}
	if !s.started.CompareAndSwap(false, true) {
		return fmt.Errorf("%w: Run was called before: make another scheduler", ErrClosed)
	}
	ctx, end := s.signals.Until(ctx)
	defer end()
	var wait loop.Backoff
	for ctx.Err() == nil {
		s.announce(ctx)
		err := s.declare(ctx)
		if err == nil || ctx.Err() != nil {
			break
		}
		if redisstore.LacksScripts(err) {
			return err
		}
		s.log.Trouble(&s.trouble, "cannot declare periodic entries; trying again", err)
		loop.Sleep(ctx, wait.Next())
	}
	wait.Reset()
	changes, forget := s.signals.SubscribeQueue(s.store) //nolint:contextcheck // the connection serves others too
	defer forget()
	s.upheld = time.Now()
	for looked := false; ctx.Err() == nil; {
		s.announce(ctx)
		s.uphold(ctx)
		next, err := s.enqueueDue(ctx)
		if err != nil {
			if ctx.Err() != nil {
				break
			}
			if !looked && redisstore.LacksScripts(err) {
				return err
			}
			s.log.Trouble(&s.trouble, "cannot look for periodic entries that are due; trying again", err)
			next = wait.Next()
		} else {
			looked = true
			s.log.Relief(&s.trouble, "looking for periodic entries again")
			wait.Reset()
		}
		s.rest(ctx, next, changes)
	}
	return redisstore.Closing(ctx)
}

// rest waits until it is time to look again, or entries have changed.
func (s *Scheduler) rest(ctx context.Context, next time.Duration, changes <-chan string) {
	timer := time.NewTimer(next)
	defer timer.Stop()
	for {
		select {
		case message := <-changes:
			if message != "" && message != periodicSignal {
				continue // a message for workers
			}
		case <-timer.C:
		case <-ctx.Done():
		}
		return
	}
}

// declare writes the entries that the code declares, and removes those that it no longer declares.
func (s *Scheduler) declare(ctx context.Context) error {
	if s.cfg.Owner == "" {
		return nil
	}
	s.unfinished = true
	for range conflicts {
		err := s.tryDeclare(ctx)
		if err == nil {
			s.unfinished = false
		}
		if !errors.Is(err, redisstore.ErrEntryChanged) {
			return err
		}
	}
	return errConflict
}

// tryDeclare is declare, unless another program changes the same entries meanwhile: then it returns
// redisstore.ErrEntryChanged.
func (s *Scheduler) tryDeclare(ctx context.Context) error {
	values, err := s.store.Entries(ctx)
	if err != nil {
		return err
	}
	stored := make(map[string]schedule.EntryValue, len(values))
	for _, v := range values {
		stored[v.Name] = v
	}
	version, stamp := numberOf(stored[s.versionField()]), numberOf(stored[s.stampField()])
	if s.cfg.Version < version {
		s.log.WithField("version", s.cfg.Version).
			Warn("periodic entries are not declared: Redis knows a newer version of their owner")
		s.generation, s.latest = 0, max(s.latest, stamp)
		return nil
	}
	now, err := s.store.Time(ctx)
	if err != nil {
		return err
	}
	changes, pruned, err := s.changes(ctx, stored, now)
	if err != nil {
		return err
	}
	var writes []entryChange
	note := func(field string, number int64) {
		raw := strconv.AppendInt(nil, number, 10)
		writes = append(writes, entryChange{was: schedule.EntryValue{Name: field, Raw: stored[field].Raw}, raw: raw})
		stored[field] = schedule.EntryValue{Name: field, Raw: raw}
	}
	if s.cfg.Version > version {
		note(s.versionField(), s.cfg.Version)
	}
	// While entries are written the stamp is 0, so that other schedulers finish what this one may leave undone, and so
	// that the last write fails if Redis has lost the first ones.
	if len(changes) > 0 {
		note(s.stampField(), 0)
		writes = append(writes, changes...)
	}
	// Stamps are times in ms since 1970, which rise also when Redis has lost the last one. A declaration that changes
	// nothing shares the stamp of the one before.
	if len(changes) > 0 || stamp < s.latest || stamp == 0 && len(s.declared) > 0 {
		stamp = max(now.UnixMilli(), stamp+1, s.latest+1)
		note(s.stampField(), stamp)
	}
	for _, c := range writes {
		if err := s.store.SetEntry(ctx, c.was, c.raw, c.due); err != nil {
			return err
		}
	}
	if len(changes) > 0 {
		s.periodic.notifySchedulers(ctx)
	}
	for _, name := range pruned {
		s.log.With("entry", name).Info("periodic entry removed: the code does not declare it any more")
	}
	s.generation, s.latest = stamp, stamp
	return nil
}

// entryChange replaces an entry as it was read. Without raw, the entry is removed.
type entryChange struct {
	was schedule.EntryValue
	raw []byte
	due time.Time
}

// changes returns what to write so that Redis has the entries that the code declares, and the names of the entries that
// the code no longer declares.
func (s *Scheduler) changes(ctx context.Context, stored map[string]schedule.EntryValue, now time.Time) (
	changes []entryChange, pruned []string, err error,
) {
	declared := make(map[string]bool, len(s.declared))
	for i := range s.declared {
		d := &s.declared[i]
		declared[d.name] = true
		if err := s.periodic.settleForm(ctx, d.task); err != nil {
			return nil, nil, err
		}
		r := &schedule.Record{Was: schedule.EntryValue{Name: d.name}}
		if v, found := stored[d.name]; found {
			if r, err = schedule.Decode(v); err != nil {
				return nil, nil, err
			}
		}
		if r.Owner != "" && r.Owner != s.cfg.Owner {
			s.log.With("entry", d.name).WithField("owner", r.Owner).
				Error("periodic entry is declared by another owner, whose declaration stays: choose another name")
			continue
		}
		if err := r.Declare(s.cfg.Owner, d.def, now); err != nil {
			return nil, nil, err
		}
		raw := r.Encode()
		if bytes.Equal(raw, r.Was.Raw) {
			continue
		}
		due, err := r.Due()
		if err != nil {
			return nil, nil, err
		}
		changes = append(changes, entryChange{was: r.Was, raw: raw, due: due})
	}
	for name, v := range stored {
		if r, err := schedule.Decode(v); err == nil && r.Owner == s.cfg.Owner && !declared[name] {
			changes = append(changes, entryChange{was: v})
			pruned = append(pruned, name)
		}
	}
	return changes, pruned, nil
}

// versionField and stampField name the values that are kept beside the entries for the owner: the highest version of
// the program that has declared entries, and the stamp of the last declaration. Names of entries do not begin with @.
func (s *Scheduler) versionField() string { return "@" + s.cfg.Owner }
func (s *Scheduler) stampField() string   { return "@declared:" + s.cfg.Owner }

// enqueueDue enqueues what is due and returns when to look again.
func (s *Scheduler) enqueueDue(ctx context.Context) (next time.Duration, err error) {
	next = loop.Jitter(s.every-s.every/8, 0.14)
	for left := 0; ctx.Err() == nil; {
		a, err := s.store.Agenda(ctx, left)
		if err != nil {
			return 0, err
		}
		moved := false
		for _, v := range a.Entries {
			wait, err := s.serve(ctx, v, a.Now)
			if err != nil {
				return 0, err
			}
			if wait > 0 {
				left++
				next = min(next, wait)
			} else {
				moved = true
			}
		}
		if a.Next >= 0 {
			next = min(next, a.Next)
		}
		s.nothingAhead = a.Next < 0 && left == 0 && len(a.Entries) == 0
		if !moved && len(a.Entries) < redisstore.AgendaPage {
			return next, nil
		}
	}
	return next, nil
}

// serve enqueues the ticks of a due entry. It returns 0 when the entry is no longer due, else when to look at it again.
func (s *Scheduler) serve(ctx context.Context, v schedule.EntryValue, now time.Time) (wait time.Duration, err error) {
	if len(v.Raw) == 0 {
		// The ticks set has a time without an entry, which this package never leaves behind. Remove it.
		return 0, ignoreChange(s.store.SetEntry(ctx, v, nil, time.Time{}))
	}
	plan, err := schedule.PlanOf(v, now)
	if err != nil {
		// Another instance may be able to serve it: a newer one, or one that knows the zone.
		s.log.With("entry", v.Name).Trouble(&s.unservable, "periodic entry cannot be served here", err)
		return move.CheckInterval, nil
	}
	if len(plan.Ticks) == 0 {
		// The entry is not due: instances with different versions of a zone's rules may disagree.
		return 0, ignoreChange(s.store.SetEntry(ctx, v, plan.Free, plan.DueFree))
	}
	holder, err := s.store.Tick(ctx, plan)
	due := plan.DueFree
	if holder != "" {
		due = plan.DueHeld
	}
	var held *redisstore.TakenError
	switch {
	case errors.As(err, &held):
		return queuedCheck, nil
	case errors.Is(err, redisstore.ErrEntryChanged), errors.Is(err, redisstore.ErrNotDue):
		return 0, nil
	case err == nil && plan.Lock != "" && !due.IsZero() && !due.After(now):
		return queuedCheck, nil // a tick waits for the previous task
	}
	return 0, err
}

var errNoSchedule = errors.New("delayed: the *Scheduler is nil or zero: make it with NewScheduler")

// announce keeps the scheduler's queue known to those who look for queues.
func (s *Scheduler) announce(ctx context.Context) {
	if now := time.Now(); !now.Before(s.announceAt) {
		s.announceAt = now.Add(s.announcer.Announce(ctx))
	}
}

// uphold writes again what Redis has lost of the entries: at most once in s.every.
func (s *Scheduler) uphold(ctx context.Context) {
	if time.Since(s.upheld) < s.every/2 {
		return // a signal or a tick has ended the rest early
	}
	err := s.restore(ctx)
	switch {
	case err == nil:
		s.log.Relief(&s.lossy, "the periodic entries are in Redis again")
	case ctx.Err() == nil:
		s.log.Trouble(&s.lossy, "cannot find out whether Redis has lost periodic entries; trying again", err)
		return
	}
	s.upheld = time.Now()
}

// restore declares the entries again if Redis has lost the declaration, and mends the times of their ticks.
func (s *Scheduler) restore(ctx context.Context) error {
	lost, err := s.lost(ctx)
	if err != nil {
		return err
	}
	if lost {
		if err := s.declare(ctx); err != nil {
			return err
		}
		s.log.Warn("Redis had lost the periodic entries that the code declares; they are declared again")
	}
	return s.mendTicks(ctx)
}

// lost reports whether Redis has lost the declaration of the entries. An entry that somebody has removed is not lost:
// the stamp is there still. What another version of the program has declared since, a scheduler of that version should
// restore; only if none does until the next look, this one declares its own.
func (s *Scheduler) lost(ctx context.Context) (bool, error) {
	if s.cfg.Owner == "" || s.unfinished {
		return s.unfinished, nil
	}
	v, err := s.store.Entry(ctx, s.stampField())
	if err != nil {
		return false, err
	}
	if stamp := numberOf(v); stamp >= s.latest {
		s.latest, s.yielded = stamp, false
		return false, nil
	}
	if s.generation < s.latest && !s.yielded {
		s.yielded = true
		return false, nil
	}
	s.yielded = false
	return true, nil
}

// mendTicks gives times to entries that should tick and have none, because Redis has lost the set of these times. It
// looks at the declared entries, and at all if one of them or everything has no time.
func (s *Scheduler) mendTicks(ctx context.Context) error {
	names := make([]string, 0, len(s.declared))
	for i := range s.declared {
		names = append(names, s.declared[i].name)
	}
	for all := s.nothingAhead; ; all = true {
		var err error
		if all {
			names, err = s.store.EntryNames(ctx)
		}
		if err == nil {
			names, err = s.store.NotTicking(ctx, names)
		}
		if err != nil {
			return err
		}
		n, err := s.mendTicksOf(ctx, names)
		if n > 0 {
			s.log.WithField("entries", n).Warn("Redis had lost when periodic entries tick; it is written again")
		}
		if n == 0 || err != nil || all {
			return err
		}
	}
}

// mendTicksOf gives a time to those of the named entries that should tick. It returns how many these are.
func (s *Scheduler) mendTicksOf(ctx context.Context, names []string) (mended int, err error) {
	values, err := s.store.EntriesOf(ctx, names)
	if err != nil {
		return 0, err
	}
	for _, v := range values {
		r, err := schedule.Decode(v)
		if err != nil {
			continue // a newer version has written it, or it is no entry
		}
		due, err := r.Due()
		if err != nil || due.IsZero() {
			continue
		}
		if err := ignoreChange(s.store.SetEntry(ctx, v, v.Raw, due)); err != nil {
			return mended, err
		}
		mended++
	}
	return mended, nil
}
