package schedule

import (
	"bytes"
	"errors"
	"fmt"
	"time"

	"github.com/godelayed/delayed/internal/wire"
)

// EntryValue is an entry as Redis holds it. Without bytes, the entry does not exist.
type EntryValue struct {
	Name string
	Raw  []byte
}

// Record is a periodic entry in Redis: its definition and its state. Encoded, it is the MessagePack array of the
// definition, in binary, and a map of the rest. A change of the rest keeps the bytes of the definition, which may have
// fields that this version does not know.
type Record struct {
	Was        EntryValue // as it was read
	Def        Definition
	defRaw     []byte
	Owner      string // that declares it; empty: it was set at run time
	declared   []byte // digest of the last declared definition
	Paused     bool
	Prev, Next time.Time // the last tick that was dealt with, and the next; zero: none
	Queued     time.Time // the tick that waits for the end of the previous task; zero: none
}

// recordLimits allow an entry somewhat more than its message.
var recordLimits = wire.Limits{
	Bytes: wire.WorkerLimits.Bytes + 8192, Elems: wire.WorkerLimits.Elems, Depth: wire.WorkerLimits.Depth,
	Path: wire.WorkerLimits.Path,
}

// Encode returns the record as Redis holds it.
func (r *Record) Encode() []byte {
	var w wire.MapWriter
	w.Begin(wire.AppendBin(wire.AppendArrayHeader(nil, 2), r.defRaw))
	if r.Owner != "" {
		w.Text("owner", r.Owner)
		w.Bin("declared", r.declared)
	}
	w.Flag("paused", r.Paused)
	w.Time("prev", r.Prev)
	w.Time("next", r.Next)
	w.Time("queued", r.Queued)
	return w.End()
}

// ErrUnreadable reports that an entry cannot be read: it is damaged, or a newer version of this package has written it.
var ErrUnreadable = errors.New("delayed: periodic entry cannot be read; a newer version may have written it")

// decodeStored checks and decodes one value.
func decodeStored(raw []byte) (any, error) {
	if err := wire.Check(raw, recordLimits); err != nil {
		return nil, err
	}
	value, _, err := wire.DecodeAny(raw)
	return value, err
}

// Decode reads an entry.
func Decode(e EntryValue) (*Record, error) {
	fail := func(err error) (*Record, error) { return nil, fmt.Errorf("%w: %q: %w", ErrUnreadable, e.Name, err) }
	value, err := decodeStored(e.Raw)
	if err != nil {
		return fail(err)
	}
	parts, ok := value.([]any)
	if !ok || len(parts) != 2 {
		return fail(errors.New("expected an array of two"))
	}
	f := wire.ReadMap(parts[1])
	at := func(key string) time.Time { return f.Time(key).UTC() }
	r := &Record{Was: e, Owner: f.Text("owner"), declared: f.Bin("declared"), Paused: f.Flag("paused")}
	r.Prev, r.Next, r.Queued = at("prev"), at("next"), at("queued")
	r.defRaw, ok = parts[0].([]byte)
	if !ok || f.Err != nil {
		return fail(errors.Join(f.Err, errors.New("expected a definition and a map")))
	}
	if value, err = decodeStored(r.defRaw); err != nil {
		return fail(err)
	}
	f = wire.ReadMap(value)
	d := &r.Def
	d.Spec, d.Zone, d.Message = f.Text("spec"), f.Text("zone"), f.Bin("task")
	d.From, d.Until, d.Relative = at("from"), at("until"), f.Number("relative", 0, 1<<16)
	d.DST = DST(f.Number("dst", 0, int64(DSTSkipMissing|DSTRunTwice))) //nolint:gosec // bounded
	d.Overlap = Overlap(f.Number("overlap", 0, int64(OverlapQueue)))   //nolint:gosec // bounded
	d.Jitter = time.Duration(f.Number("jitter", 0, maxJitter.Milliseconds())) * time.Millisecond
	if d.Missed = int(f.Number("missed", MissedSkip, maxMissed)); d.Missed == 0 {
		d.Missed = MissedLatest
	}
	if f.Err != nil {
		return fail(f.Err)
	}
	return r, nil
}

// timetable returns when the entry ticks.
func (r *Record) timetable() (*Timetable, error) { return r.Def.Timetable(r.Was.Name) }

// Define gives the entry another definition.
func (r *Record) Define(def Definition, now time.Time) error {
	t, err := def.Timetable(r.Was.Name)
	if err != nil {
		return err
	}
	if r.defRaw == nil || !r.Def.ticksAs(&def) {
		r.restart(t, now)
	}
	if def.Overlap != OverlapQueue {
		r.Queued = time.Time{}
	}
	r.Def, r.defRaw = def, def.encode()
	return nil
}

// Declare gives the entry the definition that the code of its owner declares, unless that is the one declared last:
// then changes made since then stay.
func (r *Record) Declare(owner string, def Definition, now time.Time) error {
	sum := def.digest()
	if r.Owner == owner && bytes.Equal(r.declared, sum) {
		return nil
	}
	r.Owner, r.declared = owner, sum
	return r.Define(def, now)
}

// Pause stops the entry's ticks, and drops a tick that waits.
func (r *Record) Pause() { r.Paused, r.Queued = true, time.Time{} }

// Resume ends a pause.
func (r *Record) Resume(now time.Time) error {
	if !r.Paused {
		return nil
	}
	t, err := r.timetable()
	if err != nil {
		return err
	}
	r.Paused = false
	r.restart(t, now)
	return nil
}

// restart makes the entry tick from now on.
func (r *Record) restart(t *Timetable, now time.Time) {
	r.Prev, r.Queued = now, time.Time{}
	r.Next = t.Next(now)
}

// Due returns when a scheduler must look at the entry next. Zero: never.
func (r *Record) Due() (time.Time, error) {
	t, err := r.timetable()
	if err != nil {
		return time.Time{}, err
	}
	return r.dueBy(t), nil
}

// dueBy is Due for callers that have the entry's timetable.
func (r *Record) dueBy(t *Timetable) time.Time {
	switch {
	case r.Paused:
		return time.Time{}
	case !r.Queued.IsZero():
		return r.Queued // in the past, so that every look finds it until the previous task has ended
	case r.Next.IsZero():
		return time.Time{}
	}
	return t.Due(r.Next)
}
