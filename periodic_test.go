package delayed_test

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/godelayed/delayed"
	"github.com/godelayed/delayed/internal/redisstore"
	"github.com/godelayed/delayed/internal/schedule"
	"github.com/godelayed/delayed/internal/seam"
	"github.com/godelayed/delayed/internal/wire"
)

func TestEntryChecks(t *testing.T) {
	rdb, err := delayed.Dial("redis://localhost:1")
	if err != nil {
		t.Fatal(err)
	}
	defer rdb.Close()
	work := delayed.Func(func(int) {}, delayed.Name("checks.work"))
	good := delayed.Entry{Name: "e", Spec: "@daily", Task: delayed.Call(work, 1)}
	for _, c := range []struct {
		want   string // text of the error; empty: none
		change func(e *delayed.Entry)
	}{
		{"", func(*delayed.Entry) {}},
		{"", func(e *delayed.Entry) {
			e.Options, e.Zone, e.CatchUp, e.Overlap = []delayed.Option{delayed.MaxRetry(3), delayed.Header("k", "v")},
				"Asia/Kolkata", 100,
				delayed.OverlapQueue
			e.From, e.Until, e.Jitter = time.Unix(1, 0), time.Unix(2, 0), time.Hour
		}},
		{"129 bytes", func(e *delayed.Entry) { e.Name = strings.Repeat("n", 129) }},
		{"printable", func(e *delayed.Entry) { e.Name = "two words" }},
		{"at least 1s", func(e *delayed.Entry) { e.Spec = "@every 999ms" }},
		{"Missed is 101", func(e *delayed.Entry) { e.CatchUp = 101 }},
		{"Overlap is 3", func(e *delayed.Entry) { e.Overlap = 3 }},
		{"Jitter is", func(e *delayed.Entry) { e.Jitter = -1 }},
		{"Jitter is", func(e *delayed.Entry) { e.Jitter = time.Hour + 1 }},
		{"expected a time after From", func(e *delayed.Entry) { e.From, e.Until = time.Unix(2, 0), time.Unix(2, 0) }},
		{"From is 1969", func(e *delayed.Entry) { e.From = time.Unix(-1, 0).UTC() }},
		{"up to the year 9999", func(e *delayed.Entry) { e.From = time.Unix(1<<60, 0) }},
		{"Until is", func(e *delayed.Entry) { e.Until = time.Unix(1<<60, 0) }},
		{"options but no task", func(e *delayed.Entry) {
			e.Task, e.Options = nil, []delayed.Option{delayed.MaxRetry(1)}
		}},
		{"TaskID", func(e *delayed.Entry) { e.Options = []delayed.Option{delayed.TaskID("x")} }},
		{"Front", func(e *delayed.Entry) { e.Options = []delayed.Option{delayed.Front()} }},
		{"Unique", func(e *delayed.Entry) { e.Options = []delayed.Option{delayed.Unique(time.Hour)} }},
		{"Unique", func(e *delayed.Entry) {
			e.Task = delayed.Call(delayed.Func(func() {}, delayed.Name("checks.unique"), delayed.Unique(time.Hour)))
		}},
		{"", func(e *delayed.Entry) { e.Task, e.Overlap = delayed.NewPyTask("m:f", nil, nil), delayed.OverlapSkip }},
		{"", func(e *delayed.Entry) { e.Task = delayed.NewPyTask("m:f", nil, nil) }},
	} {
		e := good
		c.change(&e)
		_, err := delayed.NewScheduler(rdb,
			delayed.SchedulerConfig{Queue: "q", Owner: "o", Entries: []delayed.Entry{e}})
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%+v: %v, expected an error with %q", e, err, c.want)
		}
	}
	for overlap, want := range map[delayed.Overlap]string{
		delayed.OverlapAllow: "",
		delayed.OverlapSkip:  "nobody knows when it is over",
	} {
		e := delayed.Entry{Name: "e", Spec: "@daily", Task: delayed.NewPyTask("m:f", nil, nil), Overlap: overlap}
		_, err := delayed.NewScheduler(rdb.WithLegacy(),
			delayed.SchedulerConfig{Queue: "q", Owner: "o", Entries: []delayed.Entry{e}})
		if want == "" && err != nil || want != "" && !strings.Contains(errorText(err), want) {
			t.Errorf("%v on a legacy queue: %v, expected an error with %q", overlap, err, want)
		}
	}
}

// definition returns how Redis keeps an entry.
func (b *bench) definition(name string) schedule.Definition {
	b.T.Helper()
	v, err := b.store.Entry(bg, name)
	b.Must(err)
	r, err := schedule.Decode(v)
	b.Must(err)
	return r.Def
}

// TestMessagesOfTicks: messages have the id and the time of their tick, and relative options count from that time.
func TestMessagesOfTicks(t *testing.T) {
	b := newBench(t)
	e := delayed.Entry{
		Name: "e", Spec: "@daily", Overlap: delayed.OverlapSkip,
		Task: delayed.Call(delayed.Func(func(int) {}, delayed.Name("ticks.work")), 7),
		Options: []delayed.Option{
			delayed.MaxRetry(3), delayed.Header("k", "v"), delayed.TTL(5 * time.Second),
		},
	}
	b.Must(b.q.Periodic().Set(bg, e))
	def := b.definition("e")
	b.Must(b.q.Periodic().Set(bg, e))
	if again := b.definition("e"); !reflect.DeepEqual(def, again) {
		t.Errorf("the same entry has two definitions:\n%+v\n%+v", def, again)
	}
	now := time.UnixMilli(1_700_000_000_000)
	message := func(def schedule.Definition) *wire.Message {
		t.Helper()
		r := &schedule.Record{Was: schedule.EntryValue{Name: "e"}}
		if err := r.Define(def, now); err != nil {
			t.Fatal(err)
		}
		plan, err := r.PlanRun("e@1", now)
		if err != nil {
			t.Fatal(err)
		}
		msg, err := wire.Parse(plan.Ticks[0].Message, wire.Default)
		if err != nil {
			t.Fatal(err)
		}
		return &msg
	}
	msg := message(def)
	m, x := msg.Meta, msg.Meta.Extra
	got := fmt.Sprintf("%s %s %d %d %v %d %s %v", msg.Path, m.ID, m.EnqueuedAt-now.UnixMilli(), m.MaxRetry,
		x.Headers, x.Expiry-now.UnixMilli(), x.Lock, x.LockLife > 0)
	if want := "ticks.work e@1 0 3 map[k:v] 5000 p:e true"; got != want {
		t.Errorf("found %s, expected %s", got, want)
	}
	e.Overlap = delayed.OverlapAllow
	b.Must(b.q.Periodic().Set(bg, e))
	if x := message(b.definition("e")).Meta.Extra; x.Lock != "" {
		t.Errorf("a lock that nobody asked for: %+v", x)
	}
}

// TestPoliciesAgree: the policies of an Entry have the same numbers in internal/schedule, and Redis stores these.
func TestPoliciesAgree(t *testing.T) {
	overlaps := 0
	for !strings.HasPrefix(delayed.Overlap(overlaps).String(), "Overlap(") {
		overlaps++
	}
	for _, c := range []struct {
		name string
		here int
		kept int
	}{
		{"OverlapAllow", int(delayed.OverlapAllow), int(schedule.OverlapAllow)},
		{"OverlapSkip", int(delayed.OverlapSkip), int(schedule.OverlapSkip)},
		{"OverlapQueue", int(delayed.OverlapQueue), int(schedule.OverlapQueue)},
		{"the number of overlaps", overlaps, int(schedule.OverlapQueue) + 1},
		{"the Missed of an entry that says none", -1, schedule.MissedSkip},
	} {
		if c.here != c.kept {
			t.Errorf("%s is %d, and %d in internal/schedule", c.name, c.here, c.kept)
		}
	}
}

// TestClocksThatChange: Redis keeps an Entry's policies for clock changes, and List shows them.
func TestClocksThatChange(t *testing.T) {
	b := newBench(t)
	p, ctx := b.q.Periodic(), t.Context()
	for _, want := range []delayed.Entry{
		{},
		{SkipClockGap: true},
		{RepeatClockOverlap: true},
		{SkipClockGap: true, RepeatClockOverlap: true},
		{CatchUp: -9},
	} {
		want.Name, want.Spec, want.Task = "e", "30 2 * * *",
			delayed.Call(delayed.Func(func() {}, delayed.Name("clocks")))
		if err := p.Set(ctx, want); err != nil {
			t.Fatal(err)
		}
		list, err := p.List(ctx)
		if err != nil || len(list) != 1 {
			t.Fatalf("found %+v, %v", list, err)
		}
		e, missed := list[0], 1
		if want.CatchUp < 0 {
			missed = -1
		}
		if e.SkipClockGap != want.SkipClockGap || e.RepeatClockOverlap != want.RepeatClockOverlap ||
			e.CatchUp != missed {
			t.Errorf("expected %+v, found %+v", want, e)
		}
	}
}

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
		t.Errorf("nothing was logged: %s", b.log)
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
		t.Errorf("it was logged %d times:\n%s", n, b.log)
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
		t.Errorf("nothing was logged: %s", b.log)
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

// TestSetWithoutATaskKeepsItsOptions: options that count from the time of enqueueing still do so.
func TestSetWithoutATaskKeepsItsOptions(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	p := b.q.Periodic()
	e := delayed.Entry{
		Name: "e", Spec: "@daily", Task: delayed.Call(b.fn("f", func() {})),
		Options: []delayed.Option{delayed.TTL(time.Hour), delayed.Header("tenant", "a")},
	}
	b.Must(p.Set(t.Context(), e))
	b.Must(p.Set(t.Context(), delayed.Entry{Name: "e", Spec: "@hourly"}))
	_, err := p.RunNow(t.Context(), "e")
	b.Must(err)
	m, err := wire.Parse([]byte(b.List("")[0]), wire.Default)
	b.Must(err)
	ends := time.UnixMilli(m.Meta.Extra.Expiry)
	if left := time.Until(ends); left < 50*time.Minute || left > time.Hour+time.Minute {
		t.Errorf("the TTL ends in %v, expected an hour", left)
	}
	if m.Meta.Extra.Headers["tenant"] != "a" {
		t.Errorf("found the headers %v", m.Meta.Extra.Headers)
	}
}

// The ticks of an entry are those that its scheduler will enqueue: in its zone, over a change of its clocks, with its
// jitter, and up to its end.
func TestTicksOfEntries(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	control := b.q.Periodic()
	berlin, err := time.LoadLocation("Europe/Berlin")
	b.Must(err)
	day := time.Date(2100, 3, 27, 2, 30, 0, 0, berlin) // the day before summer time begins
	entry := delayed.Entry{
		Name: "nightly", Spec: "30 2 * * *", Zone: "Europe/Berlin", Task: delayed.Call(b.fn("f", func() {})), From: day,
	}
	b.Must(control.Set(t.Context(), entry))
	ticks := func() []time.Time {
		t.Helper()
		entries, err := control.List(t.Context())
		b.Must(err)
		if len(entries) != 1 {
			t.Fatalf("%+v", entries)
		}
		if first := entries[0].Ticks(1); len(first) > 1 || entries[0].Ticks(0) != nil {
			t.Errorf("more ticks than were asked for: %v", first)
		}
		return entries[0].Ticks(5)
	}
	expect := func(got []time.Time, want ...time.Time) {
		t.Helper()
		if len(got) != len(want) {
			t.Fatalf("%v, expected %v", got, want)
		}
		for i := range want {
			if !got[i].Equal(want[i]) {
				t.Errorf("tick %d is at %v, expected %v", i, got[i], want[i])
			}
		}
	}
	gap := time.Date(2100, 3, 28, 3, 0, 0, 0, berlin)
	after := func(n int) time.Time { return time.Date(2100, 3, 28+n, 2, 30, 0, 0, berlin) }
	expect(ticks(), day, gap, after(1), after(2), after(3))

	entry.SkipClockGap, entry.Until, entry.Jitter = true, after(2), time.Minute
	b.Must(control.Set(t.Context(), entry))
	got := ticks()
	expect(got, day, after(1))
	entries, err := control.List(t.Context())
	b.Must(err)
	for _, tick := range got {
		if late := entries[0].DelayOf(tick); late <= 0 || late > time.Minute {
			t.Errorf("%v is enqueued %v later", tick, late)
		}
	}
	b.Must(control.Pause(t.Context(), "nightly"))
	expect(ticks())

	// A worker of another machine may know zones that this one does not.
	strange := delayed.PeriodicEntry{Spec: "@daily", Zone: "Moon/Base", Next: day}
	expect(strange.Ticks(5), day)
	if late := strange.DelayOf(day); late != 0 {
		t.Errorf("a tick in an unknown zone is %v late", late)
	}
}

// TestPeriodicTasksOfLegacyQueues: ticks enqueue tasks that the queue's legacy workers can read: structs by position,
// and Python tasks without ids.
func TestPeriodicTasksOfLegacyQueues(t *testing.T) {
	t.Parallel()
	type point struct{ X, Y int }
	b := newBench(t)
	q, err := delayed.OpenQueue(b.Name, b.rdb.WithLegacy(), delayed.QueueConfig{})
	b.Must(err)
	f := b.fn("f", func(point) {})
	b.delayWith(q, f, point{1, 2})
	p := q.Periodic()
	python := delayed.NewPyTask("m:f", []any{1}, nil)
	b.Must(p.Set(t.Context(), delayed.Entry{Name: "go", Spec: "@yearly", Task: delayed.Call(f, point{1, 2})}))
	b.Must(p.Set(t.Context(), delayed.Entry{Name: "py", Spec: "@yearly", Task: python}))
	ref, err := p.RunNow(t.Context(), "go")
	b.Must(err)
	_, err = p.RunNow(t.Context(), "py")
	b.Must(err)
	var messages []wire.Message
	for _, raw := range b.List("") {
		m, err := wire.Parse([]byte(raw), wire.Default)
		b.Must(err)
		messages = append(messages, m)
	}
	if len(messages) != 3 || string(messages[1].Payload) != string(messages[0].Payload) ||
		messages[1].Meta.ID != ref.ID() || messages[2].Kind != wire.Py {
		t.Errorf("found %q", b.List(""))
	}
	if form := b.Do("GET", b.Name+"_mode"); fmt.Sprintf("%s", form) != "plain" {
		t.Errorf("the queue's form is %s", form)
	}
	overlap := delayed.Entry{Name: "x", Spec: "@yearly", Task: python, Overlap: delayed.OverlapSkip}
	if err := p.Set(t.Context(), overlap); err == nil {
		t.Error("an entry has an overlap policy although its tasks carry no ids")
	}
}

// TestOverlapOnALegacyQueue: the overlap ends with each task of the entry, so the next tick is enqueued.
func TestOverlapOnALegacyQueue(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	var runs atomic.Int64
	f := b.fn("f", func() { runs.Add(1) })
	cfg := b.config()
	cfg.Schedulers = []delayed.SchedulerConfig{{
		Queue: b.Name, Owner: "o",
		Entries: []delayed.Entry{
			{Name: "e", Spec: "@every 1s", Task: delayed.Call(f), Overlap: delayed.OverlapSkip},
		},
	}}
	b.workWith(b.rdb.WithLegacy(), cfg, f)
	b.Until("it has run twice", func() bool { return runs.Load() == 2 })
}
