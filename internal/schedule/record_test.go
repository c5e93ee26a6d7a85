package schedule

import (
	"bytes"
	"errors"
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
	// What a newer version adds to a definition stays.
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
