package delayed

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/godelayed/delayed/internal/schedule"
	"github.com/godelayed/delayed/internal/wire"
)

// planned is an entry whose ticks up to a time have been seen to.
func planned(t *testing.T, spec, prev string, change func(r *record)) *record {
	t.Helper()
	msg := wire.Message{Kind: wire.GoExtended, Path: "f"}
	r := &record{
		was: schedule.EntryValue{Name: "e"},
		def: definition{spec: spec, missed: MissedLatest, message: msg.Append(nil)},
	}
	r.prev = utc(t, prev)
	if change != nil {
		change(r)
	}
	r.defRaw = r.def.encode()
	r.was.Raw = r.encode()
	return r
}

// showPlan says what a call does with which ticks, when the lock is free or held, and what the entry waits for
// afterwards.
func showPlan(t *testing.T, c *schedule.Plan, held bool) string {
	t.Helper()
	var parts []string
	for _, r := range c.Ticks {
		outcome := r.Free
		if held {
			outcome = r.Held
		}
		parts = append(parts, r.At.UTC().Format("15:04:05")+" "+outcome)
		if (outcome == schedule.TickEnqueued) != (r.Message != nil) && !held {
			t.Errorf("%v is %s with the message %q", r.At, outcome, r.Message)
		}
	}
	raw, due := c.Free, c.DueFree
	if held {
		raw, due = c.Held, c.DueHeld
	}
	after, err := decodeRecord(schedule.EntryValue{Name: "e", Raw: raw})
	if err != nil {
		t.Fatal(err)
	}
	text := strings.Join(parts, ", ") + "; seen " + after.prev.Format("15:04:05")
	if !after.queued.IsZero() {
		text += " waits " + after.queued.Format("15:04:05")
	}
	if due.IsZero() {
		return text + " due never"
	}
	return text + " due " + due.UTC().Format("15:04:05")
}

func TestPlans(t *testing.T) {
	const prev = "2025-01-02 10:00:00"
	missed := func(n int) func(r *record) { return func(r *record) { r.def.missed = n } }
	overlap := func(o Overlap) func(r *record) { return func(r *record) { r.def.overlap = o } }
	waiting := func(r *record) {
		r.def.overlap = OverlapQueue
		r.queued = r.prev
	}
	for _, c := range []struct {
		name, spec, now string
		change          func(r *record)
		free, held      string
	}{
		{"not due", "@every 1m", "10:00:59", nil, "; seen 10:00:00 due 10:01:00", ""},
		{"due", "@every 1m", "10:01:00", nil, "10:01:00 enqueued; seen 10:01:00 due 10:02:00", ""},
		{
			"a little late", "@every 10s", "10:00:35", missed(MissedSkip),
			"10:00:10 enqueued, 10:00:20 enqueued, 10:00:30 enqueued; seen 10:00:30 due 10:00:40", "",
		},
		{
			"missed: latest", "@every 10s", "10:00:41", nil,
			"10:00:10 missed, 10:00:40 enqueued; seen 10:00:40 due 10:00:50", "",
		},
		{"one missed", "@every 1h", "11:30:00", nil, "11:00:00 enqueued; seen 11:00:00 due 12:00:00", ""},
		{
			"missed: two", "@every 1h", "14:30:00", missed(2),
			"11:00:00 missed, 13:00:00 enqueued, 14:00:00 enqueued; seen 14:00:00 due 15:00:00", "",
		},
		{
			"missed: more than there are", "@every 1h", "12:30:00", missed(100),
			"11:00:00 enqueued, 12:00:00 enqueued; seen 12:00:00 due 13:00:00", "",
		},
		{
			"missed: skip", "@every 1h", "14:30:00", missed(MissedSkip), "11:00:00 missed; seen 14:00:00 due 15:00:00",
			"",
		},
		{
			"missed: skip, but the latest is in time", "@every 1h", "14:00:10", missed(MissedSkip),
			"11:00:00 missed, 14:00:00 enqueued; seen 14:00:00 due 15:00:00", "",
		},
		{"paused", "@every 1m", "10:05:00", func(r *record) { r.paused = true }, "; seen 10:00:00 due never", ""},
		{
			"over", "@every 1m", "10:05:00", func(r *record) { r.def.until = r.prev.Add(90 * time.Second) },
			"10:01:00 enqueued; seen 10:01:00 due never", "",
		},
		{
			"skip", "@every 1m", "10:01:00", overlap(OverlapSkip), "10:01:00 enqueued; seen 10:01:00 due 10:02:00",
			"10:01:00 overlap; seen 10:01:00 due 10:02:00",
		},
		{
			"skip several", "@every 10s", "10:00:20", overlap(OverlapSkip),
			"10:00:10 enqueued, 10:00:20 overlap; seen 10:00:20 due 10:00:30",
			"10:00:10 overlap, 10:00:20 overlap; seen 10:00:20 due 10:00:30",
		},
		{
			"queue", "@every 1m", "10:01:00", overlap(OverlapQueue), "10:01:00 enqueued; seen 10:01:00 due 10:02:00",
			"10:01:00 queued; seen 10:01:00 waits 10:01:00 due 10:01:00",
		},
		{
			"queue several", "@every 10s", "10:00:30", overlap(OverlapQueue),
			"10:00:10 enqueued, 10:00:20 queued, 10:00:30 overlap; seen 10:00:30 waits 10:00:20 due 10:00:20",
			"10:00:10 queued, 10:00:20 overlap, 10:00:30 overlap; seen 10:00:30 waits 10:00:10 due 10:00:10",
		},
		{
			"one waits", "@every 1m", "10:00:30", waiting, "10:00:00 enqueued; seen 10:00:00 due 10:01:00",
			"10:00:00 ; seen 10:00:00 waits 10:00:00 due 10:00:00",
		},
		{
			"one waits, and another is due", "@every 1m", "10:01:00", waiting,
			"10:00:00 enqueued, 10:01:00 queued; seen 10:01:00 waits 10:01:00 due 10:01:00",
			"10:00:00 , 10:01:00 overlap; seen 10:01:00 waits 10:00:00 due 10:00:00",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := planned(t, c.spec, prev, c.change)
			tt, err := r.def.timetable("e")
			if err != nil {
				t.Fatal(err)
			}
			call, err := r.plan(tt, utc(t, "2025-01-02 "+c.now))
			if err != nil {
				t.Fatal(err)
			}
			if got := showPlan(t, call, false); got != c.free {
				t.Errorf("free: %s\nexpected %s", got, c.free)
			}
			if got := showPlan(t, call, true); c.held != "" && got != c.held {
				t.Errorf("held: %s\nexpected %s", got, c.held)
			}
		})
	}
}

// TestPlansOverTime lets schedulers look at random times, sometimes after an outage: each tick is enqueued once, in
// order, unless it was missed; and none before it is due.
func TestPlansOverTime(t *testing.T) {
	for seed := range uint64(60) {
		rnd := rand.New(rand.NewPCG(seed, 1))
		spec := []string{"@every 1s", "@every 7s", "* * * * *", "*/5 * * * *", "0 * * * *"}[rnd.IntN(5)]
		r := planned(t, spec, "2025-01-02 10:00:00", func(r *record) {
			r.def.missed = []int{MissedSkip, MissedLatest, 3, 100}[rnd.IntN(4)]
			r.def.jitter = []time.Duration{0, 0, 20 * time.Second, 3 * time.Minute}[rnd.IntN(4)]
		})
		tt, err := r.def.timetable("e")
		if err != nil {
			t.Fatal(err)
		}
		expected := tt.next(r.prev)
		now := r.prev
		for range 300 {
			away := rnd.IntN(20) == 0
			if away {
				now = now.Add(time.Duration(rnd.IntN(4*3600)) * time.Second)
			} else {
				now = now.Add(time.Duration(rnd.IntN(25_000)) * time.Millisecond)
			}
			c, err := r.plan(tt, now)
			if err != nil {
				t.Fatal(err)
			}
			made := 0
			for _, row := range c.Ticks {
				if row.Free == schedule.TickMissed {
					if !row.At.Equal(expected) || now.Sub(tt.due(expected)) <= onTime {
						t.Fatalf("seed %d, %s: at %v the tick %v was missed, expected %v", seed, spec, now, row.At,
							expected)
					}
					expected = time.Time{}
					continue
				}
				made++
				if expected.IsZero() {
					expected = row.At // the first after a gap
				}
				if !row.At.Equal(expected) || tt.due(row.At).After(now) || c.NotBefore.Before(tt.due(row.At)) {
					t.Fatalf("seed %d, %s: at %v the tick %v, due %v, expected %v", seed, spec, now, row.At,
						tt.due(row.At), expected)
				}
				expected = tt.next(row.At)
			}
			if expected.IsZero() {
				// All that was missed is skipped.
				if r.def.missed != MissedSkip {
					t.Fatalf("seed %d, %s: nothing is made up for", seed, spec)
				}
			} else if late := now.Sub(tt.due(expected)); late >= 0 && made < schedule.MaxTicks {
				t.Fatalf("seed %d, %s: at %v the tick %v is %v late", seed, spec, now, expected, late)
			}
			if r, err = decodeRecord(schedule.EntryValue{Name: "e", Raw: c.Free}); err != nil {
				t.Fatal(err)
			}
			if expected.IsZero() {
				expected = tt.next(r.prev)
			}
			if !r.next.Equal(expected) && !r.paused {
				t.Fatalf("seed %d, %s: next is %v, expected %v", seed, spec, r.next, expected)
			}
		}
	}
}

func TestRecords(t *testing.T) {
	at := func(s int64) time.Time { return time.UnixMilli(s).UTC() }
	r := &record{
		was: schedule.EntryValue{Name: "e"}, owner: "shop", declared: []byte{1, 2}, paused: true, prev: at(1000),
		next:   at(2000),
		queued: at(900),
		def: definition{
			spec: "@daily", zone: "Europe/Berlin", dst: DSTRunTwice, missed: MissedSkip, overlap: OverlapQueue,
			jitter: time.Second,
			from:   at(5), until: at(7), relative: 3, message: []byte("m"),
		},
	}
	r.defRaw = r.def.encode()
	for _, want := range []*record{
		r,
		{was: schedule.EntryValue{Name: "e"}, def: definition{spec: "@daily", missed: 1, message: []byte("m")}},
	} {
		want.defRaw = want.def.encode()
		want.was.Raw = nil
		raw := want.encode()
		got, err := decodeRecord(schedule.EntryValue{Name: "e", Raw: raw})
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(got.encode(), raw) {
			t.Errorf("encoded again it is %x, was %x", got.encode(), raw)
		}
		got.was.Raw = nil
		if !reflect.DeepEqual(got, want) {
			t.Errorf("decoded it is\n%+v, was\n%+v", got, want)
		}
	}
	// What a newer version adds to a definition stays.
	newer := *r
	newer.defRaw = append(wire.AppendMapHeader(nil, 3),
		wire.AppendInt(wire.AppendString(wire.AppendBin(wire.AppendString(
			wire.AppendString(wire.AppendString(nil, "spec"), "@daily"), "task"), []byte("m")), "more"), 1)...)
	got, err := decodeRecord(schedule.EntryValue{Name: "e", Raw: newer.encode()})
	if err != nil || !bytes.Equal(got.encode(), newer.encode()) {
		t.Errorf("%v, %x", err, got.encode())
	}
	for _, raw := range []string{
		"", "\x90", "\xc0", "\x92\xc0\x80", "\x92\xc4\x00\x80",
		"\x92\xc4\x01\x80\x81\xa5owner\x01", "x",
	} {
		if _, err := decodeRecord(schedule.EntryValue{Name: "e", Raw: []byte(raw)}); !errors.Is(err, errEntryForm) {
			t.Errorf("%q: %v", raw, err)
		}
	}
}

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
		{"Missed is -2", func(e *Entry) { e.Missed = -2 }},
		{"Missed is 101", func(e *Entry) { e.Missed = 101 }},
		{"DST is 4", func(e *Entry) { e.DST = 4 }},
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
	def, err := e.define(q, shortestEvery)
	if err != nil {
		t.Fatal(err)
	}
	again, err := e.define(q, shortestEvery)
	if err != nil || !bytes.Equal(def.encode(), again.encode()) {
		t.Errorf("the same entry has two definitions: %v\n%x\n%x", err, def.encode(), again.encode())
	}
	now := time.UnixMilli(1_700_000_000_000)
	raw, err := def.taskAt("e@1", "p:e", now)
	if err != nil {
		t.Fatal(err)
	}
	msg, err := wire.Parse(raw, wire.Default)
	if err != nil {
		t.Fatal(err)
	}
	m, x := msg.Meta, msg.Meta.Extra
	got := fmt.Sprintf("%s %s %d %d %v %d %d %s %v", msg.Path, m.ID, m.EnqueuedAt-now.UnixMilli(), m.MaxRetry,
		x.Headers, x.Expiry-now.UnixMilli(), x.Deadline, x.Lock, x.LockLife > 0)
	if want := "ticks.work e@1 0 3 map[k:v] 5000 12345 p:e true"; got != want {
		t.Errorf("found %s, expected %s", got, want)
	}
	if raw, err = def.taskAt("e@1", "", now); err != nil {
		t.Fatal(err)
	}
	if msg, err = wire.Parse(raw, wire.Default); err != nil || msg.Meta.Extra.Lock != "" {
		t.Errorf("%v: a lock that nobody asked for: %+v", err, msg.Meta.Extra)
	}
}

// countsFromNow is an option that sets one time from the present and one fixed.
type countsFromNow struct{}

func (countsFromNow) String() string { return "countsFromNow" }
func (countsFromNow) applyCall(c *callOptions) {
	c.extras = append(c.extras, func(x *wire.Extra, nowMs int64) { x.Expiry, x.Deadline = nowMs+5000, 12345 })
}
