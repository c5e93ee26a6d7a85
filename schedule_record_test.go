package delayed

import (
	"bytes"
	"errors"
	"reflect"
	"testing"
	"time"

	"github.com/godelayed/delayed/internal/schedule"
	"github.com/godelayed/delayed/internal/wire"
)

func TestRecords(t *testing.T) {
	at := func(s int64) time.Time { return time.UnixMilli(s).UTC() }
	r := &record{
		was: schedule.EntryValue{Name: "e"}, owner: "shop", declared: []byte{1, 2}, paused: true, prev: at(1000),
		next:   at(2000),
		queued: at(900),
		def: definition{
			spec: "@daily", zone: "Europe/Berlin", dst: dstRunTwice, missed: missedSkip, overlap: overlapQueue,
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
