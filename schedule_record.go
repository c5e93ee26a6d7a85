package delayed

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"time"

	"github.com/godelayed/delayed/internal/schedule"
	"github.com/godelayed/delayed/internal/wire"
)

// record is a periodic entry in Redis: its definition, and what has become of it. As bytes it is the MessagePack array
// of the definition, in binary, and a map of the rest; whoever changes the rest takes over the definition as it is,
// with what only others know of it.
type record struct {
	was        schedule.EntryValue // as it was read
	def        definition
	defRaw     []byte
	owner      string // who declares it; empty: it was set at run time
	declared   []byte // digest of the definition that was declared last
	paused     bool
	prev, next time.Time // the last tick that was seen to, and the next; zero: none
	queued     time.Time // the tick that waits for the end of the previous task; zero: none
}

// recordLimits allow an entry some more than its message.
var recordLimits = wire.Limits{
	Bytes: wire.WorkerLimits.Bytes + 8192, Elems: wire.WorkerLimits.Elems, Depth: wire.WorkerLimits.Depth,
	Path: wire.WorkerLimits.Path,
}

// digest tells definitions apart.
func digest(def []byte) []byte {
	sum := sha256.Sum256(def)
	return sum[:8]
}

// encode returns the definition as MessagePack: the same bytes for the same definition. What has its default is left
// out.
func (d *definition) encode() []byte {
	var body []byte
	n := 0
	put := func(key string) {
		n++
		body = wire.AppendString(body, key)
	}
	number := func(key string, v, initial int64) {
		if v != initial {
			put(key)
			body = wire.AppendInt(body, v)
		}
	}
	moment := func(key string, t time.Time) {
		if !t.IsZero() {
			put(key)
			body = wire.AppendInt(body, t.UnixMilli())
		}
	}
	put("spec")
	body = wire.AppendString(body, d.spec)
	if d.zone != "" {
		put("zone")
		body = wire.AppendString(body, d.zone)
	}
	number("dst", int64(d.dst), 0)
	number("missed", int64(d.missed), MissedLatest)
	number("overlap", int64(d.overlap), 0)
	number("jitter", d.jitter.Milliseconds(), 0)
	moment("from", d.from)
	moment("until", d.until)
	number("relative", d.relative, 0)
	put("task")
	body = wire.AppendBin(body, d.message)
	return append(wire.AppendMapHeader(nil, n), body...)
}

// encode returns the record as Redis holds it.
func (r *record) encode() []byte {
	var body []byte
	n := 0
	put := func(key string) {
		n++
		body = wire.AppendString(body, key)
	}
	if r.owner != "" {
		put("owner")
		body = wire.AppendString(body, r.owner)
		put("declared")
		body = wire.AppendBin(body, r.declared)
	}
	if r.paused {
		put("paused")
		body = wire.AppendBool(body, true)
	}
	for _, t := range []struct {
		key string
		at  time.Time
	}{{"prev", r.prev}, {"next", r.next}, {"queued", r.queued}} {
		if !t.at.IsZero() {
			put(t.key)
			body = wire.AppendInt(body, t.at.UnixMilli())
		}
	}
	dst := wire.AppendBin(wire.AppendArrayHeader(nil, 2), r.defRaw)
	return append(wire.AppendMapHeader(dst, n), body...)
}

// errEntryForm says that an entry cannot be read: it is damaged, or a newer version of this package has written it.
var errEntryForm = errors.New("delayed: periodic entry cannot be read; a newer version may have written it")

// decodeRecord reads an entry.
func decodeRecord(e schedule.EntryValue) (*record, error) {
	fail := func(err error) (*record, error) { return nil, fmt.Errorf("%w: %q: %w", errEntryForm, e.Name, err) }
	value, err := decodeStored(e.Raw)
	if err != nil {
		return fail(err)
	}
	parts, ok := value.([]any)
	if !ok || len(parts) != 2 {
		return fail(errors.New("expected an array of two"))
	}
	f := fields{values: asMap(parts[1])}
	r := &record{was: e, owner: f.text("owner"), declared: f.bin("declared"), paused: f.flag("paused")}
	r.prev, r.next, r.queued = f.moment("prev"), f.moment("next"), f.moment("queued")
	r.defRaw, ok = parts[0].([]byte)
	if !ok || f.err != nil {
		return fail(errors.Join(f.err, errors.New("expected a definition and a map")))
	}
	if value, err = decodeStored(r.defRaw); err != nil {
		return fail(err)
	}
	f = fields{values: asMap(value)}
	d := &r.def
	d.spec, d.zone, d.message = f.text("spec"), f.text("zone"), f.bin("task")
	d.from, d.until, d.relative = f.moment("from"), f.moment("until"), f.number("relative", 0, 1<<16)
	d.dst = DST(f.number("dst", 0, int64(DSTSkipMissing|DSTRunTwice)))      //nolint:gosec // bounded
	d.overlap = Overlap(f.number("overlap", 0, int64(len(overlapNames)-1))) //nolint:gosec // bounded
	d.jitter = time.Duration(f.number("jitter", 0, maxJitter.Milliseconds())) * time.Millisecond
	if d.missed = int(f.number("missed", MissedSkip, maxMissed)); d.missed == 0 {
		d.missed = MissedLatest
	}
	if f.err != nil {
		return fail(f.err)
	}
	return r, nil
}

// decodeStored decodes one value after checking it.
func decodeStored(raw []byte) (any, error) {
	if err := wire.Check(raw, recordLimits); err != nil {
		return nil, err
	}
	value, _, err := wire.DecodeAny(raw)
	return value, err
}

func asMap(v any) map[string]any {
	m, _ := v.(map[string]any)
	return m
}

// fields reads the values of a map and keeps the first error.
type fields struct {
	values map[string]any
	err    error
}

func (f *fields) wrong(key, want string) {
	if f.err == nil {
		f.err = fmt.Errorf("%q: expected %s, found %v", key, want, f.values[key])
	}
}

func (f *fields) text(key string) string {
	s, ok := f.values[key].(string)
	if !ok && f.values[key] != nil {
		f.wrong(key, "a string")
	}
	return s
}

func (f *fields) bin(key string) []byte {
	b, ok := f.values[key].([]byte)
	if !ok && f.values[key] != nil {
		f.wrong(key, "binary")
	}
	return bytes.Clone(b)
}

func (f *fields) flag(key string) bool {
	b, ok := f.values[key].(bool)
	if !ok && f.values[key] != nil {
		f.wrong(key, "a boolean")
	}
	return b
}

func (f *fields) number(key string, lowest, highest int64) int64 {
	n, ok := f.values[key].(int64)
	if f.values[key] != nil && (!ok || n < lowest || n > highest) {
		f.wrong(key, fmt.Sprintf("a number from %d to %d", lowest, highest))
	}
	return n
}

func (f *fields) moment(key string) time.Time {
	if f.values[key] == nil {
		return time.Time{}
	}
	return time.UnixMilli(f.number(key, 0, 1<<53)).UTC()
}
