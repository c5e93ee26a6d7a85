package schedule

import (
	"bytes"
	"errors"
	"fmt"
	"reflect"
	"testing"
	"time"

	"github.com/godelayed/delayed/internal/wire"
)

func TestRecords(t *testing.T) {
	at := func(s int64) time.Time { return time.UnixMilli(s).UTC() }
	r := &Record{
		Was: EntryValue{Name: "e"}, Owner: "shop", declared: []byte{1, 2}, Paused: true, Prev: at(1000),
		Next:   at(2000),
		Queued: at(900),
		Def: Definition{
			Spec: "@daily", Zone: "Europe/Berlin", DST: DSTRunTwice, Missed: MissedSkip, Overlap: OverlapQueue,
			Jitter: time.Second,
			From:   at(5), Until: at(7), Relative: 3, Message: []byte("m"),
		},
	}
	r.defRaw = r.Def.encode()
	for _, want := range []*Record{
		r,
		{Was: EntryValue{Name: "e"}, Def: Definition{Spec: "@daily", Missed: 1, Message: []byte("m")}},
	} {
		want.defRaw = want.Def.encode()
		want.Was.Raw = nil
		raw := want.Encode()
		got, err := Decode(EntryValue{Name: "e", Raw: raw})
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(got.Encode(), raw) {
			t.Errorf("encoded again it is %x, was %x", got.Encode(), raw)
		}
		got.Was.Raw = nil
		if !reflect.DeepEqual(got, want) {
			t.Errorf("decoded it is\n%+v, was\n%+v", got, want)
		}
	}
	// A key that a newer version adds to a definition stays.
	newer := *r
	newer.defRaw = append(wire.AppendMapHeader(nil, 3),
		wire.AppendInt(wire.AppendString(wire.AppendBin(wire.AppendString(
			wire.AppendString(wire.AppendString(nil, "spec"), "@daily"), "task"), []byte("m")), "more"), 1)...)
	got, err := Decode(EntryValue{Name: "e", Raw: newer.Encode()})
	if err != nil || !bytes.Equal(got.Encode(), newer.Encode()) {
		t.Errorf("%v, %x", err, got.Encode())
	}
	for _, raw := range []string{
		"", "\x90", "\xc0", "\x92\xc0\x80", "\x92\xc4\x00\x80",
		"\x92\xc4\x01\x80\x81\xa5owner\x01", "x",
	} {
		if _, err := Decode(EntryValue{Name: "e", Raw: []byte(raw)}); !errors.Is(err, ErrUnreadable) {
			t.Errorf("%q: %v", raw, err)
		}
	}
}

// stored is the record as another process decodes it.
func stored(t *testing.T, r *Record) *Record {
	t.Helper()
	read, err := Decode(EntryValue{Name: r.Was.Name, Raw: r.Encode()})
	if err != nil {
		t.Fatal(err)
	}
	return read
}

// TestDeclarationsHoldOnce: an unchanged declaration leaves settings alone that were made since then; a changed one
// replaces them, and so does another owner's.
func TestDeclarationsHoldOnce(t *testing.T) {
	msg := wire.Message{Kind: wire.GoExtended, Path: "f"}
	now := utc(t, "2025-01-02 10:00:30")
	r := &Record{Was: EntryValue{Name: "e"}}
	declare := func(owner, spec, want string) {
		t.Helper()
		if err := r.Declare(owner, Definition{Spec: spec, Missed: 1, Message: msg.Append(nil)}, now); err != nil {
			t.Fatal(err)
		}
		if r = stored(t, r); r.Def.Spec != want || r.Owner != owner {
			t.Errorf("the entry of %s ticks %s, expected %s", r.Owner, r.Def.Spec, want)
		}
	}
	declare("shop", "@every 1m", "@every 1m")
	set := r.Def
	set.Spec = "@every 2m"
	if err := r.Define(set, now); err != nil {
		t.Fatal(err)
	}
	declare("shop", "@every 1m", "@every 2m")
	declare("shop", "@every 3m", "@every 3m")
	if err := r.Define(set, now); err != nil {
		t.Fatal(err)
	}
	declare("other", "@every 3m", "@every 3m")
}

// TestPausedRecords: paused entries are never due, and drop the tick that waits. When the pause ends, ticks during the
// pause are not made up for.
func TestPausedRecords(t *testing.T) {
	r := planned(t, "@every 1m", "2025-01-02 10:00:00", func(r *Record) {
		r.Def.Overlap, r.Queued = OverlapQueue, r.Prev
	})
	due := func(want time.Time) {
		t.Helper()
		if at, err := stored(t, r).Due(); err != nil || !at.Equal(want) {
			t.Errorf("due at %v, %v, expected %v", at, err, want)
		}
	}
	due(r.Queued)
	r.Pause()
	due(time.Time{})
	if waits := stored(t, r).Queued; !waits.IsZero() {
		t.Errorf("the tick %v waits on", waits)
	}
	if p, err := PlanOf(EntryValue{Name: "e", Raw: r.Encode()}, utc(t, "2025-01-02 11:00:00")); err != nil ||
		len(p.Ticks) > 0 || !p.DueFree.IsZero() {
		t.Errorf("a paused entry: %v, %+v", err, p)
	}
	now := utc(t, "2025-01-02 11:00:30")
	for range 2 { // the second call has nothing to end
		if err := r.Resume(now); err != nil {
			t.Fatal(err)
		}
		due(utc(t, "2025-01-02 11:01:00"))
		now = now.Add(time.Hour)
	}
}

// TestPlanRun enqueues the task under the lock of its ticks, and does not change the entry, paused or not.
func TestPlanRun(t *testing.T) {
	r := planned(t, "@every 1m", "2025-01-02 10:00:00", func(r *Record) { r.Def.Overlap = OverlapSkip })
	r.Next = utc(t, "2025-01-02 10:01:00")
	for _, due := range []time.Time{r.Next, {}} {
		now := utc(t, "2025-01-02 10:00:30")
		p, err := r.PlanRun("e@1", now)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(p.Free, p.Was.Raw) || !bytes.Equal(p.Held, p.Was.Raw) || !p.DueFree.Equal(due) ||
			!p.DueHeld.Equal(due) || p.Lock != "p:e" {
			t.Errorf("found %+v, expected it due at %v", p, due)
		}
		if len(p.Ticks) != 1 || p.Ticks[0].ID != "e@1" || !p.Ticks[0].At.Equal(now) || p.Ticks[0].Message == nil ||
			p.Ticks[0].Free != TickEnqueued {
			t.Errorf("found ticks %+v", p.Ticks)
		}
		r.Pause()
	}
}

// TestBytesOfRecords pins the bytes that schedulers of all versions read and compare, and the digests by which they
// recognize a declaration.
func TestBytesOfRecords(t *testing.T) {
	at := func(ms int64) time.Time { return time.UnixMilli(ms).UTC() }
	for _, c := range []struct {
		r             Record
		bytes, digest string
	}{
		{
			Record{Def: Definition{Spec: "@daily", Missed: MissedLatest, Message: []byte("m")}},
			"92c41582a473706563a6406461696c79a47461736bc4016d80", "c7bd0cf7c3e86ee1",
		},
		{
			Record{
				Owner: "shop", declared: []byte{1, 2}, Paused: true, Prev: at(1000), Next: at(2000), Queued: at(900),
				Def: Definition{
					Spec: "@daily", Zone: "Europe/Berlin", DST: DSTRunTwice, Missed: MissedSkip, Overlap: OverlapQueue,
					Jitter: time.Second, From: at(5), Until: at(7), Relative: 3, Message: []byte("m"),
				},
			},
			"92c45f8aa473706563a6406461696c79a47a6f6e65ad4575726f70652f4265726c696ea364737402a66d6973" +
				"736564ffa76f7665726c617002a66a6974746572cd03e8a466726f6d05a5756e74696c07a872656c61746976" +
				"6503a47461736bc4016d86a56f776e6572a473686f70a86465636c61726564c4020102a6706175736564c3a4" +
				"70726576cd03e8a46e657874cd07d0a6717565756564cd0384",
			"6459f2acf76c1fcc",
		},
	} {
		c.r.defRaw = c.r.Def.encode()
		if raw := fmt.Sprintf("%x", c.r.Encode()); raw != c.bytes {
			t.Errorf("%+v is %s, expected %s", c.r, raw, c.bytes)
		}
		if sum := fmt.Sprintf("%x", c.r.Def.digest()); sum != c.digest {
			t.Errorf("the digest of %+v is %s, expected %s", c.r.Def, sum, c.digest)
		}
	}
}

// TestRecordsKeepFieldsOfNewerVersions changes the state of an entry whose definition a newer version has written.
func TestRecordsKeepFieldsOfNewerVersions(t *testing.T) {
	def := Definition{Spec: "@daily", Missed: MissedLatest, Message: []byte("m")}
	raw := def.encode()
	raw[0]++ // the count of the map's fields
	raw = wire.AppendBool(wire.AppendString(raw, "newer"), true)
	old := Record{Def: def, defRaw: raw, Next: time.UnixMilli(2000).UTC()}
	r, err := Decode(EntryValue{Name: "e", Raw: old.Encode()})
	if err != nil {
		t.Fatal(err)
	}
	r.Pause()
	r.Next = time.UnixMilli(3000).UTC()
	if !bytes.Contains(r.Encode(), raw) {
		t.Errorf("%x has lost what is in the definition %x", r.Encode(), raw)
	}
}
