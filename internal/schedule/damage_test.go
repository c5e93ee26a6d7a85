package schedule

import (
	"errors"
	"testing"
	"time"

	"github.com/godelayed/delayed/internal/wire"
)

// TestDamagedRecords reads entries of which one value has another type, or one that this version does not know: this
// version leaves each to others that can read it.
func TestDamagedRecords(t *testing.T) {
	whole := func(n int64) []byte { return wire.AppendInt(nil, n) }
	text := wire.AppendString(nil, "x")
	record := func(def []byte, key string, value []byte) []byte {
		raw := wire.AppendBin(wire.AppendArrayHeader(nil, 2), def)
		if value == nil {
			return wire.AppendMapHeader(raw, 0)
		}
		return append(wire.AppendString(wire.AppendMapHeader(raw, 1), key), value...)
	}
	definition := func(key string, value []byte) []byte {
		return append(wire.AppendString(wire.AppendMapHeader(nil, 1), key), value...)
	}
	good := definition("spec", wire.AppendString(nil, "@daily"))
	for _, c := range []struct {
		name string
		raw  []byte
		ok   bool
	}{
		{"nothing beside the definition", record(good, "", nil), true},
		{"a definition that ends early", record(good[:len(good)-1], "", nil), false},
		{"owner", record(good, "owner", whole(1)), false},
		{"declared", record(good, "declared", text), false},
		{"paused", record(good, "paused", whole(1)), false},
		{"prev", record(good, "prev", text), false},
		{"next before 1970", record(good, "next", whole(-1)), false},
		{"next", record(good, "next", whole(1<<53)), true},
		{"next that is not exact in Redis", record(good, "next", whole(1<<53+1)), false},
		{"queued", record(good, "queued", text), false},
		{"spec", record(definition("spec", whole(1)), "", nil), false},
		{"zone", record(definition("zone", whole(1)), "", nil), false},
		{"task", record(definition("task", text), "", nil), false},
		{"from", record(definition("from", text), "", nil), false},
		{"until", record(definition("until", whole(-1)), "", nil), false},
		{"dst of today", record(definition("dst", whole(3)), "", nil), true},
		{"dst of a newer version", record(definition("dst", whole(4)), "", nil), false},
		{"overlap of today", record(definition("overlap", whole(2)), "", nil), true},
		{"overlap of a newer version", record(definition("overlap", whole(3)), "", nil), false},
		{"missed of today", record(definition("missed", whole(maxMissed)), "", nil), true},
		{"missed of a newer version", record(definition("missed", whole(maxMissed+1)), "", nil), false},
		{"missed below none", record(definition("missed", whole(MissedSkip-1)), "", nil), false},
		{"longest jitter", record(definition("jitter", whole(maxJitter.Milliseconds())), "", nil), true},
		{"longer jitter", record(definition("jitter", whole(maxJitter.Milliseconds()+1)), "", nil), false},
		{"negative jitter", record(definition("jitter", whole(-1)), "", nil), false},
		{"relative of today", record(definition("relative", whole(7)), "", nil), true},
		{"negative relative", record(definition("relative", whole(-1)), "", nil), false},
	} {
		r, err := Decode(EntryValue{Name: "e", Raw: c.raw})
		if c.ok != (err == nil) || !c.ok && !errors.Is(err, ErrUnreadable) || c.ok != (r != nil) {
			t.Errorf("%s: found %v, expected that it can be read: %v", c.name, err, c.ok)
		}
	}
}

// TestEntriesThatTickNoMore: such entries are never due, whatever their jitter.
func TestEntriesThatTickNoMore(t *testing.T) {
	for _, jitter := range []time.Duration{0, time.Minute} {
		r := planned(t, "@every 1m", "2025-01-02 10:00:00", func(r *Record) {
			r.Def.Jitter, r.Def.Until = jitter, r.Prev
		})
		if at, err := stored(t, r).Due(); err != nil || !at.IsZero() {
			t.Errorf("with a jitter of %v it is due at %v, %v", jitter, at, err)
		}
		p, err := PlanOf(EntryValue{Name: "e", Raw: r.Was.Raw}, utc(t, "2025-01-02 11:00:00"))
		if err != nil || len(p.Ticks) > 0 || !p.DueFree.IsZero() || !p.DueHeld.IsZero() {
			t.Errorf("with a jitter of %v: found %+v, %v", jitter, p, err)
		}
	}
}

// TestMissedTickIsNotedBesideAnOverlap: the history contains missed ticks also when the latest tick overlaps.
func TestMissedTickIsNotedBesideAnOverlap(t *testing.T) {
	for _, c := range []struct {
		overlap Overlap
		held    string
	}{
		{OverlapSkip, "11:00:00 missed, 14:00:00 overlap; seen 14:00:00 due 15:00:00"},
		{OverlapQueue, "11:00:00 missed, 14:00:00 queued; seen 14:00:00 waits 14:00:00 due 14:00:00"},
	} {
		r := planned(t, "@every 1h", "2025-01-02 10:00:00", func(r *Record) { r.Def.Overlap = c.overlap })
		p, err := PlanOf(r.Was, utc(t, "2025-01-02 14:30:00"))
		if err != nil {
			t.Fatal(err)
		}
		if got := showPlan(t, p, true); got != c.held {
			t.Errorf("found %s, expected %s", got, c.held)
		}
		want := "11:00:00 missed, 14:00:00 enqueued; seen 14:00:00 due 15:00:00"
		if got := showPlan(t, p, false); got != want {
			t.Errorf("found %s, expected %s", got, want)
		}
	}
}
