package delayed_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/godelayed/delayed"
	"github.com/godelayed/delayed/internal/redisstore"
	"github.com/godelayed/delayed/internal/schedule"
	"github.com/godelayed/delayed/internal/seam"
	"github.com/godelayed/delayed/internal/wire"
)

// idInMessage returns the id in a message.
func idInMessage(t testing.TB, raw string) string {
	t.Helper()
	msg, err := wire.Parse([]byte(raw), wire.WorkerLimits)
	if err != nil {
		t.Fatal(err)
	}
	return strings.Clone(msg.Meta.ID)
}

// entryNames returns the names of all entries, with their owners.
func (b *bench) entryNames() string {
	b.T.Helper()
	all, err := b.periodic().List(bg)
	b.Must(err)
	var names []string
	for _, e := range all {
		names = append(names, e.Name+"/"+e.Owner)
	}
	return strings.Join(names, " ")
}

func TestSetListRemove(t *testing.T) {
	b := newBench(t)
	p := b.periodic()
	fn := b.fn("set", func(int) {})
	from := time.Date(2100, 1, 2, 0, 0, 0, 0, time.UTC)
	b.Must(p.Set(bg, delayed.Entry{
		Name: "e", Spec: "30 9 * * *", Zone: "Europe/Berlin", Task: delayed.Call(fn, 1), RepeatClockOverlap: true,
		CatchUp: 5,
		Overlap: delayed.OverlapSkip, Jitter: time.Minute,
		From: from, Until: from.AddDate(1, 0, 0),
	}))
	e := b.entry("e")
	if got := e.Next.Format(time.RFC3339); got != "2100-01-02T09:30:00+01:00" {
		t.Errorf("next tick at %s", got)
	}
	if zone := e.Previous.Location().String(); zone != "Europe/Berlin" {
		t.Errorf("the previous tick is shown in %s", zone)
	}
	if time.Since(e.Previous) > patience || e.Function != b.Name+".set" || e.Owner != "" || e.Paused || e.Waiting {
		t.Errorf("found %+v", e)
	}
	if got := fmt.Sprintln(e.Spec, e.Zone, e.RepeatClockOverlap, e.CatchUp, e.Overlap, e.Jitter, e.From.Equal(from),
		e.Until.Year()); got != "30 9 * * * Europe/Berlin true 5 skip 1m0s true 2101\n" {
		t.Errorf("found %s in %+v", got, e)
	}
	// Without a task, the entry keeps the one that it has.
	b.Must(p.Set(bg, delayed.Entry{Name: "e", Spec: "@daily"}))
	if e := b.entry("e"); e.Function != b.Name+".set" || e.Spec != "@daily" || time.Until(e.Next) > 24*time.Hour {
		t.Errorf("found %+v", e)
	}
	if err := p.Set(bg, delayed.Entry{Name: "f", Spec: "@daily"}); err == nil ||
		!strings.Contains(err.Error(), "is new and has no task") {
		t.Errorf("a new entry without a task: %v", err)
	}
	if err := b.q.Periodic().Set(bg,
		delayed.Entry{Name: "f", Spec: "@every 10ms", Task: delayed.Call(fn, 1)}); err == nil {
		t.Error("a hundred ticks a second, and no error")
	}
	// Setting the same again changes no time.
	b.rewind("e", time.Hour)
	before := b.entry("e").Previous
	b.Must(p.Set(bg, delayed.Entry{Name: "e", Spec: "@daily", CatchUp: 7}))
	if e := b.entry("e"); !e.Previous.Equal(before) || e.CatchUp != 7 {
		t.Errorf("%v became %v", before, e)
	}
	b.Must(p.Set(bg, delayed.Entry{Name: "e", Spec: "@hourly"}))
	_, err := p.RunNow(bg, "e")
	b.Must(err)
	b.Must(p.Remove(bg, "e"))
	for name, err := range map[string]error{
		"Remove": p.Remove(bg, "e"), "Pause": p.Pause(bg, "e"),
		"Resume": p.Resume(bg, "e"), "RunNow": second(p.RunNow(bg, "e")),
	} {
		if !errors.Is(err, delayed.ErrNoEntry) {
			t.Errorf("%s of an entry that is gone: %v", name, err)
		}
	}
	if lines := b.history("e"); len(lines) > 0 || b.Size("_periodic")+b.Size("_ticks") > 0 {
		t.Errorf("something is left: %v", lines)
	}
}

// TestSetHoldsFromNowOn: a change of when an entry ticks takes effect from now on, and adds no ticks for the past.
// Other changes do not affect the times.
func TestSetHoldsFromNowOn(t *testing.T) {
	b := newBench(t)
	p, task := b.periodic(), delayed.Call(b.fn("x", func() {}))
	berlin := delayed.Entry{Name: "e", Spec: "@daily", Zone: "Europe/Berlin", Task: task}
	later := time.Now().AddDate(1, 0, 0)
	for name, c := range map[string]struct {
		change func(e *delayed.Entry)
		anew   bool
	}{
		"spec":    {func(e *delayed.Entry) { e.Spec = "@hourly" }, true},
		"zone":    {func(e *delayed.Entry) { e.Zone = "Asia/Kolkata" }, true},
		"DST":     {func(e *delayed.Entry) { e.RepeatClockOverlap = true }, true},
		"jitter":  {func(e *delayed.Entry) { e.Jitter = time.Minute }, true},
		"from":    {func(e *delayed.Entry) { e.From = later }, true},
		"until":   {func(e *delayed.Entry) { e.Until = later }, true},
		"missed":  {func(e *delayed.Entry) { e.CatchUp = 7 }, false},
		"overlap": {func(e *delayed.Entry) { e.Overlap = delayed.OverlapSkip }, false},
		"options": {func(e *delayed.Entry) { e.Options = []delayed.Option{delayed.MaxRetry(1)} }, false},
	} {
		b.Must(p.Set(bg, berlin))
		b.rewind("e", 48*time.Hour)
		before, changed := b.entry("e"), berlin
		c.change(&changed)
		b.Must(p.Set(bg, changed))
		if e := b.entry("e"); e.Previous.After(before.Previous) != c.anew || e.Next.Equal(before.Next) == c.anew {
			t.Errorf("%s: after %v comes %v; it was after %v %v", name, e.Previous, e.Next, before.Previous,
				before.Next)
		}
		b.Must(p.Remove(bg, "e"))
	}
	// An entry that had ended ticks again.
	over := berlin
	over.Until = time.Now().Add(-time.Hour)
	b.Must(p.Set(bg, over))
	if e := b.entry("e"); !e.Next.IsZero() {
		t.Errorf("it is over, and ticks at %v", e.Next)
	}
	over.Until = later
	b.Must(p.Set(bg, over))
	if e := b.entry("e"); e.Next.IsZero() {
		t.Error("it does not tick although it is over much later")
	}
}

// TestChangesDropTheTickThatWaits: a tick that waits for the previous task is dropped when its entry is paused, and
// when the entry no longer queues ticks.
func TestChangesDropTheTickThatWaits(t *testing.T) {
	for name, change := range map[string]func(p *delayed.PeriodicControl) error{
		"Pause": func(p *delayed.PeriodicControl) error { return p.Pause(bg, "e") },
		"OverlapSkip": func(p *delayed.PeriodicControl) error {
			return p.Set(bg, delayed.Entry{Name: "e", Spec: "@hourly", Overlap: delayed.OverlapSkip})
		},
		"OverlapAllow": func(p *delayed.PeriodicControl) error {
			return p.Set(bg, delayed.Entry{Name: "e", Spec: "@hourly"})
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			p, s := b.periodic(), b.scheduler(b.rdb, "")
			b.Must(p.Set(bg, delayed.Entry{
				Name: "e", Spec: "@hourly", Task: delayed.Call(b.fn("x", func() {})),
				Overlap: delayed.OverlapQueue,
			}))
			_, err := p.RunNow(bg, "e")
			b.Must(err)
			b.rewind("e", time.Hour)
			b.Must(seam.Tick(b.within(), s))
			if !b.entry("e").Waiting {
				t.Fatalf("no tick waits: %v", b.history("e"))
			}
			b.Must(change(p))
			b.Must(seam.Tick(b.within(), s))
			if e := b.entry("e"); e.Waiting || b.Size("") != 1 {
				t.Errorf("the tick is not dropped: %d tasks, %+v", b.Size(""), e)
			}
		})
	}
}

func TestPauseAndResume(t *testing.T) {
	b := newBench(t)
	p := b.periodic()
	b.Must(p.Set(bg, delayed.Entry{
		Name: "e", Spec: "@every 10ms", Task: delayed.Call(b.fn("x", func() {})),
		CatchUp: 100,
	}))
	b.schedule(b.scheduler(b.rdb, ""))
	b.Until("it ticks", func() bool { return b.Size("") > 0 })
	b.Must(p.Pause(bg, "e"))
	b.Must(p.Pause(bg, "e"))
	n := b.Size("")
	if e := b.entry("e"); !e.Paused || !e.Next.IsZero() || b.Size("_ticks") > 0 {
		t.Errorf("found %+v", e)
	}
	b.Must(p.Set(bg, delayed.Entry{Name: "e", Spec: "@every 20ms"}))
	if e := b.entry("e"); !e.Paused || b.Size("_ticks") > 0 {
		t.Errorf("changed while paused: found %+v", e)
	}
	ref, err := p.RunNow(bg, "e")
	b.Must(err)
	if ids := b.pendingIDs(); len(ids) != n+1 || ids[n] != ref.ID() || !strings.HasPrefix(ref.ID(), "e@") {
		t.Errorf("%d tasks were pending, now %v with %s", n, ids, ref)
	}
	b.rewind("e", time.Hour)
	b.Must(p.Resume(bg, "e"))
	b.Must(p.Resume(bg, "e"))
	b.Until("it ticks again", func() bool { return b.Size("") > n+1 })
	if lines := b.history("e"); slices.Contains(lines, "missed") {
		t.Errorf("the pause was made up for: %v", lines)
	}
}

func TestRunNowWhileRunning(t *testing.T) {
	b := newBench(t)
	p := b.periodic()
	b.Must(p.Set(bg, delayed.Entry{
		Name: "e", Spec: "@daily", Task: delayed.Call(b.fn("x", func() {})),
		Overlap: delayed.OverlapSkip,
	}))
	first, err := p.RunNow(bg, "e")
	b.Must(err)
	var held *delayed.DuplicateError
	if _, err := p.RunNow(bg, "e"); !errors.As(err, &held) || held.ID != first.ID() {
		t.Errorf("a second run: %v, expected one that names %s", err, first.ID())
	}
	if n := b.Size(""); n != 1 {
		t.Errorf("%d tasks are pending", n)
	}
	b.Must(p.Set(bg, delayed.Entry{Name: "e", Spec: "@daily"})) // allows overlaps
	if _, err := p.RunNow(bg, "e"); err != nil {
		t.Error(err)
	}
}

// TestDeclarations: entries come and go with the code that declares them.
func TestDeclarations(t *testing.T) {
	b := newBench(t)
	p := b.periodic()
	fn := b.fn("x", func(int) {})
	daily := func(name string, arg int) delayed.Entry {
		return delayed.Entry{Name: name, Spec: "@daily", Task: delayed.Call(fn, arg)}
	}
	declare := func(owner string, entries ...delayed.Entry) {
		t.Helper()
		b.Must(delayed.Declare(bg, b.scheduler(b.rdb, owner, entries...)))
	}
	expect := func(want string) {
		t.Helper()
		if got := b.entryNames(); got != want {
			t.Errorf("entries %s, expected %s", got, want)
		}
	}
	b.Must(p.Set(bg, daily("free", 1)))
	b.Must(p.Set(bg, daily("taken", 1)))
	declare("shop", daily("a", 1), daily("b", 1), daily("taken", 1))
	declare("blog", daily("c", 1), daily("a", 2))
	expect("a/shop b/shop c/blog free/ taken/shop")
	if !strings.Contains(b.log.String(), "declared by another owner") {
		t.Errorf("nobody was told: %s", b.log)
	}
	declare("shop", daily("b", 1), daily("d", 1))
	expect("b/shop c/blog d/shop free/")
	declare("")
	expect("b/shop c/blog d/shop free/")
	declare("blog")
	expect("b/shop d/shop free/")

	// A change at run time lasts until the declaration changes.
	b.Must(p.Set(bg, delayed.Entry{Name: "b", Spec: "@hourly"}))
	b.Must(p.Pause(bg, "b"))
	declare("shop", daily("b", 1), daily("d", 1))
	if e := b.entry("b"); e.Spec != "@hourly" || !e.Paused || e.Owner != "shop" {
		t.Errorf("found %+v", e)
	}
	declare("shop", daily("b", 2), daily("d", 1))
	if e := b.entry("b"); e.Spec != "@daily" || !e.Paused {
		t.Errorf("found %+v", e)
	}
	// An unchanged declaration changes no time.
	b.rewind("d", time.Hour)
	before := b.entry("d").Previous
	declare("shop", daily("b", 2), daily("d", 1))
	if got := b.entry("d").Previous; !got.Equal(before) {
		t.Errorf("%v became %v", before, got)
	}
}

// TestVersionsOfDeclarations starts an old program while a new one runs.
func TestVersionsOfDeclarations(t *testing.T) {
	b := newBench(t)
	fn := b.fn("x", func(int) {})
	declare := func(owner string, version int64, names ...string) {
		t.Helper()
		var entries []delayed.Entry
		for _, name := range names {
			entries = append(entries, delayed.Entry{Name: name, Spec: "@daily", Task: delayed.Call(fn, 1)})
		}
		s, err := delayed.NewScheduler(b.rdb, delayed.SchedulerConfig{
			Queue: b.Name, Owner: owner, Version: version, Entries: entries, Logger: b.log.Logger(),
		})
		b.Must(err)
		b.Must(delayed.Declare(bg, s))
	}
	for _, step := range []struct {
		version int64
		names   string
		want    string
	}{
		{0, "a b", "a/shop b/shop"},
		{2, "a c", "a/shop c/shop"},
		{1, "a b", "a/shop c/shop"},
		{0, "a b", "a/shop c/shop"},
		{2, "c d", "c/shop d/shop"},
		{3, "e", "e/shop"},
	} {
		declare("shop", step.version, strings.Fields(step.names)...)
		if got := b.entryNames(); got != step.want {
			t.Errorf("version %d declares %s: entries %s, expected %s", step.version, step.names, got, step.want)
		}
	}
	declare("blog", 1, "f")
	if got := b.entryNames(); got != "e/shop f/blog" {
		t.Errorf("entries %s", got)
	}
	if n := strings.Count(b.log.String(), "not declared"); n != 2 {
		t.Errorf("it was told %d times:\n%s", n, b.log)
	}
}

// TestConcurrentChanges: several changes of one entry at the same time all take effect.
func TestConcurrentChanges(t *testing.T) {
	b := newBench(t)
	b.Must(b.periodic().Set(bg,
		delayed.Entry{Name: "e", Spec: "@every 10ms", Task: delayed.Call(b.fn("x", func() {}))}))
	b.schedule(b.scheduler(b.rdb, ""))
	var changing sync.WaitGroup
	for i := range 4 {
		changing.Go(func() {
			for n := range 20 {
				if err := b.periodic().Set(bg,
					delayed.Entry{Name: "e", Spec: "@every 10ms", CatchUp: 1 + i + 4*n}); err != nil {
					t.Error(err)
				}
				if _, err := b.periodic().RunNow(bg, "e"); err != nil {
					t.Error(err)
				}
			}
		})
	}
	changing.Wait()
	manual := 0
	for _, id := range b.pendingIDs() {
		if strings.Contains(id, "-") {
			manual++
		}
	}
	if manual != 80 {
		t.Errorf("%d runs were asked for, %d made", 80, manual)
	}
}

// TestPeriodicPython enqueues tasks that Python workers can read.
func TestPeriodicPython(t *testing.T) {
	b := newBench(t)
	b.Must(b.periodic().Set(bg,
		delayed.Entry{
			Name: "e", Spec: "@daily", Task: delayed.NewPyTask("m:f", []any{1}, nil),
			Options: []delayed.Option{delayed.MaxRetry(2)},
		}))
	_, err := b.periodic().RunNow(bg, "e")
	b.Must(err)
	msg, err := wire.Parse([]byte(b.List("")[0]), wire.Default)
	b.Must(err)
	if msg.Kind != wire.PyExtended || msg.Path != "m:f" || msg.Retry != 2 {
		t.Errorf("found %+v", msg)
	}
	if form := b.Do("GET", b.Name+"_mode"); fmt.Sprintf("%s", form) != "extended" {
		t.Errorf("the queue's form is %s", form)
	}
}

// TestEntriesOfNewerVersions: schedulers leave entries of newer versions alone, and serve the others.
func TestEntriesOfNewerVersions(t *testing.T) {
	b := newBench(t)
	strange := schedule.EntryValue{Name: "strange"}
	b.Must(b.store.SetEntry(bg, strange, []byte("?"), time.UnixMilli(past)))
	b.Must(b.store.SetEntry(bg, schedule.EntryValue{Name: "gone"}, nil, time.UnixMilli(past)))
	b.Must(b.periodic().Set(bg,
		delayed.Entry{Name: "e", Spec: "@every 10ms", Task: delayed.Call(b.fn("x", func() {}))}))
	b.schedule(b.scheduler(b.rdb, "test"))
	b.Until("the other ticks", func() bool { return b.Size("") > 2 })
	b.Until("the time without an entry is gone", func() bool { return b.Size("_ticks") == 2 })
	if e, err := b.store.Entry(bg, "strange"); err != nil || string(e.Raw) != "?" {
		t.Errorf("%q, %v", e.Raw, err)
	}
	if all, err := b.periodic().List(bg); !errors.Is(err, schedule.ErrUnreadable) || len(all) != 1 {
		t.Errorf("%v, %v", all, err)
	}
	if !strings.Contains(b.log.String(), "cannot be served here") {
		t.Errorf("nobody was told: %s", b.log)
	}
}

// TestManyEntriesOfNewerVersions: more such entries than one look reads do not keep another entry from ticking.
func TestManyEntriesOfNewerVersions(t *testing.T) {
	b := newBench(t)
	for i := range redisstore.AgendaPage + 1 {
		b.Must(b.store.SetEntry(bg, schedule.EntryValue{Name: fmt.Sprint("strange", i)}, []byte("?"),
			time.UnixMilli(past)))
	}
	b.Must(b.periodic().Set(bg, delayed.Entry{Name: "e", Spec: "@hourly", Task: delayed.Call(b.fn("x", func() {}))}))
	b.rewind("e", time.Hour)
	b.Must(seam.Tick(b.within(), b.scheduler(b.rdb, "")))
	if lines := b.history("e"); b.Size("") != 1 || len(lines) != 1 {
		t.Errorf("%d tasks are pending: %v", b.Size(""), lines)
	}
}

// TestSetWithOptionsOfTheQueue: the options of With apply to the tasks of entries, and the entry's own options take
// precedence.
func TestSetWithOptionsOfTheQueue(t *testing.T) {
	b := newBench(t)
	q := b.q.With(delayed.Header("tenant", "a"), delayed.Header("trace", "b"), delayed.MaxRetry(3))
	b.Must(q.Periodic().Set(bg, delayed.Entry{
		Name: "e", Spec: "@daily", Task: delayed.Call(b.fn("f", func() {})),
		Options: []delayed.Option{delayed.MaxRetry(5), delayed.Header("trace", "c")},
	}))
	ref, err := b.q.Periodic().RunNow(bg, "e")
	b.Must(err)
	msg := b.pending()[0]
	if x := msg.Meta.Extra; msg.Meta.ID != ref.ID() || msg.Meta.MaxRetry != 5 || x == nil ||
		fmt.Sprint(x.Headers) != "map[tenant:a trace:c]" {
		t.Errorf("found %+v", msg.Meta)
	}
}
