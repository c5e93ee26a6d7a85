package delayed

import (
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/godelayed/delayed/internal/schedule"
	"github.com/godelayed/delayed/internal/wire"
)

func TestEntryChecks(t *testing.T) {
	rdb, err := Dial("redis://localhost:1")
	if err != nil {
		t.Fatal(err)
	}
	defer rdb.Close()
	work := Func(func(int) {}, Name("checks.work"))
	good := Entry{Name: "e", Spec: "@daily", Task: Call(work, 1)}
	for _, c := range []struct {
		want   string // of the error; empty: none
		change func(e *Entry)
	}{
		{"", func(*Entry) {}},
		{"", func(e *Entry) {
			e.Options, e.Zone, e.Missed, e.Overlap = []Option{MaxRetry(3), Header("k", "v")}, "Asia/Kolkata", 100,
				OverlapQueue
			e.From, e.Until, e.Jitter = time.Unix(1, 0), time.Unix(2, 0), time.Hour
		}},
		{"without a name", func(e *Entry) { e.Name = "" }},
		{"129 bytes", func(e *Entry) { e.Name = strings.Repeat("n", 129) }},
		{"begin with @", func(e *Entry) { e.Name = "@e" }},
		{"printable", func(e *Entry) { e.Name = "two words" }},
		{"the spec", func(e *Entry) { e.Spec = "" }},
		{"at least 1s", func(e *Entry) { e.Spec = "@every 999ms" }},
		{"Missed is 101", func(e *Entry) { e.Missed = 101 }},
		{"Overlap is 3", func(e *Entry) { e.Overlap = 3 }},
		{"Jitter is", func(e *Entry) { e.Jitter = -1 }},
		{"Jitter is", func(e *Entry) { e.Jitter = time.Hour + 1 }},
		{"expected a time after From", func(e *Entry) { e.From, e.Until = time.Unix(2, 0), time.Unix(2, 0) }},
		{"From is 1969", func(e *Entry) { e.From = time.Unix(-1, 0).UTC() }},
		{"up to the year 9999", func(e *Entry) { e.From = time.Unix(1<<60, 0) }},
		{"Until is", func(e *Entry) { e.Until = time.Unix(1<<60, 0) }},
		{"has no task", func(e *Entry) { e.Task = nil }},
		{"options but no task", func(e *Entry) { e.Task, e.Options = nil, []Option{MaxRetry(1)} }},
		{"argument 1", func(e *Entry) { e.Task = Call(work, "x") }},
		{"In and At", func(e *Entry) { e.Options = []Option{In(time.Second)} }},
		{"TaskID", func(e *Entry) { e.Options = []Option{TaskID("x")} }},
		{"Front", func(e *Entry) { e.Options = []Option{Front()} }},
		{"Unique", func(e *Entry) { e.Options = []Option{Unique(time.Hour)} }},
		{"Unique", func(e *Entry) { e.Task = Call(Func(func() {}, Name("checks.unique"), Unique(time.Hour))) }},
		{"option 1 is nil", func(e *Entry) { e.Options = []Option{nil} }},
		{"", func(e *Entry) { e.Task, e.Overlap = NewPyTask("m:f", nil, nil), OverlapSkip }},
		{"", func(e *Entry) { e.Task = NewPyTask("m:f", nil, nil) }},
	} {
		e := good
		c.change(&e)
		_, err := NewScheduler(rdb, SchedulerConfig{Queue: "q", Owner: "o", Entries: []Entry{e}})
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%+v: %v, expected an error with %q", e, err, c.want)
		}
	}
	for overlap, want := range map[Overlap]string{OverlapAllow: "", OverlapSkip: "nobody knows when it is over"} {
		e := Entry{Name: "e", Spec: "@daily", Task: NewPyTask("m:f", nil, nil), Overlap: overlap}
		_, err := NewScheduler(rdb, SchedulerConfig{Queue: "q", Owner: "o", Legacy: true, Entries: []Entry{e}})
		if want == "" && err != nil || want != "" && !strings.Contains(errorText(err), want) {
			t.Errorf("%v on a legacy queue: %v, expected an error with %q", overlap, err, want)
		}
	}
	for _, c := range []struct {
		cfg  SchedulerConfig
		want string
	}{
		{SchedulerConfig{}, "queue name is empty"},
		{SchedulerConfig{Queue: "q", Entries: []Entry{good}}, "Owner is missing"},
		{SchedulerConfig{Queue: "q", Owner: strings.Repeat("o", 129)}, "129 bytes"},
		{SchedulerConfig{Queue: "q", Owner: "o", Version: -1}, "Version is -1"},
		{SchedulerConfig{Queue: "q", Version: 1}, "Version is 1"},
		{SchedulerConfig{Queue: "q", Owner: "o", Entries: []Entry{good, good}}, "declared twice"},
	} {
		if _, err := NewScheduler(rdb, c.cfg); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: %v, expected an error with %q", c.cfg, err, c.want)
		}
	}
	if _, err := NewScheduler(nil, SchedulerConfig{Queue: "q"}); err == nil {
		t.Error("no handle, and no error")
	}
}

// TestMessagesOfTicks have the id and the time of their tick; what options count from the present counts from there.
func TestMessagesOfTicks(t *testing.T) {
	rdb, err := Dial("redis://localhost:1")
	if err != nil {
		t.Fatal(err)
	}
	defer rdb.Close()
	q := NewQueue("q", rdb)
	e := Entry{
		Name: "e", Spec: "@daily", Overlap: OverlapSkip, Task: Call(Func(func(int) {}, Name("ticks.work")), 7),
		Options: []Option{MaxRetry(3), Header("k", "v"), countsFromNow{}},
	}
	def, err := e.define(q, schedule.ShortestEvery)
	if err != nil {
		t.Fatal(err)
	}
	again, err := e.define(q, schedule.ShortestEvery)
	if err != nil || !reflect.DeepEqual(def, again) {
		t.Errorf("the same entry has two definitions: %v\n%+v\n%+v", err, def, again)
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
	got := fmt.Sprintf("%s %s %d %d %v %d %d %s %v", msg.Path, m.ID, m.EnqueuedAt-now.UnixMilli(), m.MaxRetry,
		x.Headers, x.Expiry-now.UnixMilli(), x.Deadline, x.Lock, x.LockLife > 0)
	if want := "ticks.work e@1 0 3 map[k:v] 5000 12345 p:e true"; got != want {
		t.Errorf("found %s, expected %s", got, want)
	}
	e.Overlap = OverlapAllow
	if def, err = e.define(q, schedule.ShortestEvery); err != nil {
		t.Fatal(err)
	}
	if x := message(def).Meta.Extra; x.Lock != "" {
		t.Errorf("a lock that nobody asked for: %+v", x)
	}
}

// TestPoliciesAgree: what an Entry may say, internal/schedule knows by the same numbers, which stand in Redis.
func TestPoliciesAgree(t *testing.T) {
	for _, c := range []struct {
		name string
		here int
		kept int
	}{
		{"OverlapAllow", int(OverlapAllow), int(schedule.OverlapAllow)},
		{"OverlapSkip", int(OverlapSkip), int(schedule.OverlapSkip)},
		{"OverlapQueue", int(OverlapQueue), int(schedule.OverlapQueue)},
		{"the number of overlaps", len(overlapNames), int(schedule.OverlapQueue) + 1},
		{"the Missed of an entry that says none", -1, schedule.MissedSkip},
	} {
		if c.here != c.kept {
			t.Errorf("%s is %d, and %d in internal/schedule", c.name, c.here, c.kept)
		}
	}
}

// countsFromNow is an option that sets one time from the present and one fixed.
type countsFromNow struct{}

func (countsFromNow) String() string { return "countsFromNow" }
func (countsFromNow) forQueueWith(c *callOptions) {
	c.extras = append(c.extras, func(x *wire.Extra, nowMs int64) { x.Expiry, x.Deadline = nowMs+5000, 12345 })
}

// TestClocksThatChange: what an Entry says of them is kept, and List shows it.
func TestClocksThatChange(t *testing.T) {
	b := newBench(t)
	p, ctx := b.q.Periodic(), t.Context()
	for _, want := range []Entry{
		{}, {SkipMissing: true}, {RunTwice: true}, {SkipMissing: true, RunTwice: true}, {Missed: -9},
	} {
		want.Name, want.Spec, want.Task = "e", "30 2 * * *", Call(Func(func() {}, Name("clocks")))
		if err := p.Set(ctx, want); err != nil {
			t.Fatal(err)
		}
		list, err := p.List(ctx)
		if err != nil || len(list) != 1 {
			t.Fatalf("found %+v, %v", list, err)
		}
		e, missed := list[0], 1
		if want.Missed < 0 {
			missed = -1
		}
		if e.SkipMissing != want.SkipMissing || e.RunTwice != want.RunTwice || e.Missed != missed {
			t.Errorf("expected %+v, found %+v", want, e)
		}
	}
}
