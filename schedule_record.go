package delayed

import (
	"bytes"
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
	d.dst = dstPolicy(f.number("dst", 0, int64(dstSkipMissing|dstRunTwice))) //nolint:gosec // bounded
	d.overlap = overlapPolicy(f.number("overlap", 0, int64(overlapQueue)))   //nolint:gosec // bounded
	d.jitter = time.Duration(f.number("jitter", 0, maxJitter.Milliseconds())) * time.Millisecond
	if d.missed = int(f.number("missed", missedSkip, maxMissed)); d.missed == 0 {
		d.missed = missedLatest
	}
	if f.err != nil {
		return fail(f.err)
	}
	return r, nil
}

// timetable says when the entry ticks.
func (r *record) timetable() (*timetable, error) { return r.def.timetable(r.was.Name) }

// define gives the entry another definition.
func (r *record) define(def definition, now time.Time) error {
	t, err := def.timetable(r.was.Name)
	if err != nil {
		return err
	}
	if r.defRaw == nil || !r.def.ticksAs(&def) {
		r.restart(t, now)
	}
	if def.overlap != overlapQueue {
		r.queued = time.Time{}
	}
	r.def, r.defRaw = def, def.encode()
	return nil
}

// declare gives the entry the definition that the code of its owner declares, unless that is the one declared last:
// then changes made since then stay.
func (r *record) declare(owner string, def definition, now time.Time) error {
	sum := def.digest()
	if r.owner == owner && bytes.Equal(r.declared, sum) {
		return nil
	}
	r.owner, r.declared = owner, sum
	return r.define(def, now)
}

// pause makes the entry tick no more, and drops a tick that waits.
func (r *record) pause() { r.paused, r.queued = true, time.Time{} }

// resume ends a pause.
func (r *record) resume(now time.Time) error {
	if !r.paused {
		return nil
	}
	t, err := r.timetable()
	if err != nil {
		return err
	}
	r.paused = false
	r.restart(t, now)
	return nil
}

// restart makes the entry tick from now on.
func (r *record) restart(t *timetable, now time.Time) {
	r.prev, r.queued = now, time.Time{}
	r.next = t.next(now)
}

// due returns when a scheduler must look at the entry next. Zero: never.
func (r *record) due() (time.Time, error) {
	t, err := r.timetable()
	if err != nil {
		return time.Time{}, err
	}
	return r.dueBy(t), nil
}

// dueBy is due for who has the entry's timetable.
func (r *record) dueBy(t *timetable) time.Time {
	switch {
	case r.paused:
		return time.Time{}
	case !r.queued.IsZero():
		return r.queued // over already: every look shows it until the previous task has ended
	case r.next.IsZero():
		return time.Time{}
	}
	return t.due(r.next)
}
