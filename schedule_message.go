package delayed

import (
	"strings"
	"time"

	"github.com/godelayed/delayed/internal/schedule"
	"github.com/godelayed/delayed/internal/wire"
)

// Bits of definition.relative. Definitions in Redis have them.
const (
	relativeExpiry = 1 << iota
	relativeDeadline
	relativeRetryUntil
)

// relativeTimes returns the times of a message that may count from its tick, by their bits.
func relativeTimes(x *wire.Extra) map[int64]*int64 {
	return map[int64]*int64{
		relativeExpiry: &x.Expiry, relativeDeadline: &x.Deadline, relativeRetryUntil: &x.RetryUntil,
	}
}

// relativeOf compares what was made of one call at two moments, which are apart ms from one another. It returns which
// times count from the moment, for a definition.
func relativeOf(x, y *wire.Extra, apart int64) (relative int64) {
	later := relativeTimes(y)
	for bit, at := range relativeTimes(x) {
		if *later[bit]-*at == apart {
			relative |= bit
		}
	}
	return relative
}

// taskAt returns the message of one task of the entry. An empty lock means that it holds none.
func (d *definition) taskAt(id, lock string, now time.Time) ([]byte, error) {
	msg, err := wire.Parse(d.message, wire.WorkerLimits)
	if err != nil {
		return nil, err
	}
	if msg.Kind != wire.GoExtended && msg.Kind != wire.PyExtended {
		return d.message, nil
	}
	ms := now.UnixMilli()
	msg.Meta.ID, msg.Meta.EnqueuedAt = id, ms
	if d.relative != 0 || lock != "" {
		var x wire.Extra
		if msg.Meta.Extra != nil {
			x = *msg.Meta.Extra
		}
		for bit, at := range relativeTimes(&x) {
			if d.relative&bit != 0 {
				*at += ms
			}
		}
		if lock != "" {
			x.Lock, x.LockLife = lock, schedule.OverlapLife.Milliseconds()
		}
		msg.Meta.Extra = &x
	}
	return msg.Append(nil), nil
}

// path returns the path of the entry's function.
func (d *definition) path() string {
	msg, err := wire.Parse(d.message, wire.WorkerLimits)
	if err != nil {
		return ""
	}
	return strings.Clone(msg.Path)
}
