// Package schedule computes when the periodic entries of a queue tick, and what to enqueue and to write then. It is
// pure: its callers pass the time and what Redis holds, and get a Plan of what to write.
//
// The value of an entry in Redis holds its definition and its state, and every script that changes an entry gets the
// value that was read: it carries out a Plan only if the entry is still the same. So schedulers need neither a leader
// nor a lock, and a script that is sent twice does nothing the second time. Go computes the ticks, because Lua has no
// time zones, and a Plan has both outcomes, for a free lock and for a held one; the script chooses.
package schedule

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/robfig/cron/v3"
)

// ShortestEvery is the shortest interval of @every: each tick is a task and a line of history.
const ShortestEvery = time.Second

// Timetable defines when an entry ticks. It is a function of the entry alone, so that all processes agree on it.
type Timetable struct {
	every  time.Duration      // of @every, else 0
	spec   *cron.SpecSchedule // otherwise: the fields as bit sets
	loc    *time.Location
	dst    DST
	free   bool          // the hour field allows every hour: ticks follow the clock, whatever it leaves out or repeats
	from   time.Time     // no tick before; zero: none
	until  time.Time     // no tick from then on; zero: none
	jitter time.Duration // longest delay of a tick
	name   string        // of the entry, for the jitter
}

// newTimetable reads a spec: five fields, a descriptor such as @daily, or @every with a duration. A prefix CRON_TZ= or
// TZ= names the zone, as the parameter does; if both do, they must agree.
func newTimetable(spec, zone string, dst DST) (*Timetable, error) {
	text := strings.TrimSpace(spec)
	for _, prefix := range []string{"CRON_TZ=", "TZ="} {
		rest, ok := strings.CutPrefix(text, prefix)
		if !ok {
			continue
		}
		name, fields, _ := strings.Cut(rest, " ")
		if zone != "" && zone != name {
			return nil, fmt.Errorf("the spec %q names another zone than the entry, which says %q: leave one out", spec,
				zone)
		}
		zone, text = name, strings.TrimSpace(fields)
		break
	}
	loc, err := LoadZone(zone)
	if err != nil {
		return nil, err
	}
	t := &Timetable{loc: loc, dst: dst}
	if every, ok := strings.CutPrefix(text, "@every "); ok {
		if t.every, err = time.ParseDuration(strings.TrimSpace(every)); err != nil {
			return nil, fmt.Errorf("the spec %q: expected a duration such as 90s or 1h30m after @every, found %q", spec,
				every)
		}
		if t.every < time.Millisecond || t.every%time.Millisecond != 0 {
			return nil, fmt.Errorf("the spec %q: expected a positive duration in whole milliseconds", spec)
		}
		return t, nil
	}
	parsed, err := cron.ParseStandard(text)
	if err != nil {
		return nil, fmt.Errorf("the spec %q: expected five fields, @hourly, @daily, @weekly, @monthly, @yearly or "+
			"@every and a duration: %w", spec, err)
	}
	fields, ok := parsed.(*cron.SpecSchedule)
	if !ok {
		return nil, fmt.Errorf("the spec %q is of no known kind", spec)
	}
	own := *fields
	own.Location = time.UTC // it computes times of clocks; cron.go deals with zones
	t.spec = &own
	const hours = 1<<24 - 1
	t.free = own.Hour&hours == hours
	if t.wall(time.Unix(0, 0).UTC()).IsZero() {
		return nil, fmt.Errorf("the spec %q never ticks: there is no such day", spec)
	}
	return t, nil
}

// LoadZone loads a zone by its name. "" is UTC; the zone of the machine is refused, because others may have another.
func LoadZone(name string) (*time.Location, error) {
	switch name {
	case "":
		return time.UTC, nil
	case "Local":
		return nil, errors.New("the zone Local differs between machines: name one, such as Europe/Berlin")
	}
	loc, err := time.LoadLocation(name)
	if err != nil {
		return nil, fmt.Errorf("the zone %q is not known on this machine: expected a name such as Europe/Berlin; "+
			"import time/tzdata where the system has no zones: %w", name, err)
	}
	return loc, nil
}

// nextEvery counts from the entry's start, or from 1970, so that restarts of processes do not shift the ticks.
func (t *Timetable) nextEvery(after time.Time) time.Time {
	origin, every := int64(0), t.every.Milliseconds()
	if !t.from.IsZero() {
		origin = t.from.UnixMilli()
	}
	passed := after.UnixMilli() - origin
	n := passed / every
	if passed < 0 && passed%every != 0 {
		n--
	}
	return time.UnixMilli(origin + (n+1)*every).In(t.loc)
}

// Due returns when a tick is enqueued: later by up to the jitter, by the same time in all instances.
func (t *Timetable) Due(tick time.Time) time.Time {
	most := uint64(t.jitter.Milliseconds()) //nolint:gosec // not negative
	if most == 0 {
		return tick
	}
	// FNV-1a over name and time, and the finish of MurmurHash3: ticks differ in few bits.
	const offset, prime = 14695981039346656037, 1099511628211
	h := uint64(offset)
	for i := range len(t.name) {
		h = (h ^ uint64(t.name[i])) * prime
	}
	h = (h ^ uint64(tick.UnixMilli())) * prime
	h = (h ^ h>>33) * 0xff51afd7ed558ccd
	h = (h ^ h>>33) * 0xc4ceb9fe1a85ec53
	h ^= h >> 33
	return tick.Add(time.Duration(h%(most+1)) * time.Millisecond) //nolint:gosec // at most most
}

// last returns the latest n ticks after one time and up to another, in their order.
func (t *Timetable) last(after, upTo time.Time, n int) []time.Time {
	if !t.until.IsZero() && !upTo.Before(t.until) {
		upTo = t.until.Add(-time.Millisecond)
	}
	for span := time.Hour; ; span *= 4 {
		from := upTo.Add(-span)
		whole := !from.After(after)
		if whole {
			from = after
		}
		var ring []time.Time
		for tick := t.Next(from); !tick.IsZero() && !tick.After(upTo); tick = t.Next(tick) {
			if len(ring) == n {
				ring = append(ring[:0], ring[1:]...)
			}
			ring = append(ring, tick)
			if t.every > 0 && len(ring) == 1 {
				// Skip those before the last n in one step.
				if more := int64(upTo.Sub(tick) / t.every); more >= int64(n) {
					tick = tick.Add(time.Duration(more-int64(n)) * t.every)
					ring = ring[:0]
				}
			}
		}
		if whole || len(ring) == n {
			return ring
		}
	}
}
