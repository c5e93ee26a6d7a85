package schedule

import (
	"strings"
	"time"

	"github.com/godelayed/delayed/internal/wire"
)

// Bits of Definition.Relative. Redis holds them, so they must not change.
const (
	relativeExpiry = 1 << iota
	relativeDeadline
	relativeRetryUntil
)

// timesOf returns the times of a message that may be relative to its tick, by their bits.
func timesOf(x *wire.Extra) map[int64]*int64 {
	return map[int64]*int64{
		relativeExpiry: &x.Expiry, relativeDeadline: &x.Deadline, relativeRetryUntil: &x.RetryUntil,
	}
}

// RelativeTimes compares the options of one call as encoded at two times, apart ms from each other, and returns which
// of them are relative to the present: bits of Definition.Relative.
func RelativeTimes(x, y *wire.Extra, apart int64) (relative int64) {
	later := timesOf(y)
	for bit, at := range timesOf(x) {
		if *later[bit]-*at == apart {
			relative |= bit
		}
	}
	return relative
}

// taskAt returns the message of one task of the entry, with its id and time unless it is a Python task of a legacy
// queue, which carries none. An empty lock means that it holds none.
func (d *Definition) taskAt(id, lock string, now time.Time) ([]byte, error) {
	msg, err := wire.Parse(d.Message, wire.WorkerLimits)
	if err != nil {
		return nil, err
	}
	if msg.Kind == wire.Py {
		return d.Message, nil
	}
	msg.Extend()
	ms := now.UnixMilli()
	msg.Meta.ID, msg.Meta.EnqueuedAt = id, ms
	if d.Relative != 0 || lock != "" {
		var x wire.Extra
		if msg.Meta.Extra != nil {
			x = *msg.Meta.Extra
		}
		for bit, at := range timesOf(&x) {
			if d.Relative&bit != 0 {
				*at += ms
			}
		}
		if lock != "" {
			x.Lock, x.LockLife = lock, OverlapLife.Milliseconds()
		}
		msg.Meta.Extra = &x
	}
	return msg.Append(nil), nil
}

// Path returns the path of the entry's function.
func (d *Definition) Path() string {
	msg, err := wire.Parse(d.Message, wire.WorkerLimits)
	if err != nil {
		return ""
	}
	return strings.Clone(msg.Path)
}
