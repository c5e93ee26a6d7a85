package delayed_test

import (
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/godelayed/delayed"
	"github.com/godelayed/delayed/internal/schedule"
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
		{"without a name", func(e *delayed.Entry) { e.Name = "" }},
		{"129 bytes", func(e *delayed.Entry) { e.Name = strings.Repeat("n", 129) }},
		{"begin with @", func(e *delayed.Entry) { e.Name = "@e" }},
		{"printable", func(e *delayed.Entry) { e.Name = "two words" }},
		{"the spec", func(e *delayed.Entry) { e.Spec = "" }},
		{"at least 1s", func(e *delayed.Entry) { e.Spec = "@every 999ms" }},
		{"Missed is 101", func(e *delayed.Entry) { e.CatchUp = 101 }},
		{"Overlap is 3", func(e *delayed.Entry) { e.Overlap = 3 }},
		{"Jitter is", func(e *delayed.Entry) { e.Jitter = -1 }},
		{"Jitter is", func(e *delayed.Entry) { e.Jitter = time.Hour + 1 }},
		{"expected a time after From", func(e *delayed.Entry) { e.From, e.Until = time.Unix(2, 0), time.Unix(2, 0) }},
		{"From is 1969", func(e *delayed.Entry) { e.From = time.Unix(-1, 0).UTC() }},
		{"up to the year 9999", func(e *delayed.Entry) { e.From = time.Unix(1<<60, 0) }},
		{"Until is", func(e *delayed.Entry) { e.Until = time.Unix(1<<60, 0) }},
		{"has no task", func(e *delayed.Entry) { e.Task = nil }},
		{"options but no task", func(e *delayed.Entry) {
			e.Task, e.Options = nil, []delayed.Option{delayed.MaxRetry(1)}
		}},
		{"argument 1", func(e *delayed.Entry) { e.Task = delayed.Call(work, "x") }},
		{"In and At", func(e *delayed.Entry) { e.Options = []delayed.Option{delayed.In(time.Second)} }},
		{"TaskID", func(e *delayed.Entry) { e.Options = []delayed.Option{delayed.TaskID("x")} }},
		{"Front", func(e *delayed.Entry) { e.Options = []delayed.Option{delayed.Front()} }},
		{"Unique", func(e *delayed.Entry) { e.Options = []delayed.Option{delayed.Unique(time.Hour)} }},
		{"Unique", func(e *delayed.Entry) {
			e.Task = delayed.Call(delayed.Func(func() {}, delayed.Name("checks.unique"), delayed.Unique(time.Hour)))
		}},
		{"option 1 is nil", func(e *delayed.Entry) { e.Options = []delayed.Option{nil} }},
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
		_, err := delayed.NewScheduler(rdb,
			delayed.SchedulerConfig{Queue: "q", Owner: "o", Legacy: true, Entries: []delayed.Entry{e}})
		if want == "" && err != nil || want != "" && !strings.Contains(errorText(err), want) {
			t.Errorf("%v on a legacy queue: %v, expected an error with %q", overlap, err, want)
		}
	}
	for _, c := range []struct {
		cfg  delayed.SchedulerConfig
		want string
	}{
		{delayed.SchedulerConfig{}, "queue name is empty"},
		{delayed.SchedulerConfig{Queue: "q", Entries: []delayed.Entry{good}}, "Owner is missing"},
		{delayed.SchedulerConfig{Queue: "q", Owner: strings.Repeat("o", 129)}, "129 bytes"},
		{delayed.SchedulerConfig{Queue: "q", Owner: "o", Version: -1}, "Version is -1"},
		{delayed.SchedulerConfig{Queue: "q", Version: 1}, "Version is 1"},
		{delayed.SchedulerConfig{Queue: "q", Owner: "o", Entries: []delayed.Entry{good, good}}, "declared twice"},
	} {
		if _, err := delayed.NewScheduler(rdb, c.cfg); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: %v, expected an error with %q", c.cfg, err, c.want)
		}
	}
	if _, err := delayed.NewScheduler(nil, delayed.SchedulerConfig{Queue: "q"}); err == nil {
		t.Error("no handle, and no error")
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
