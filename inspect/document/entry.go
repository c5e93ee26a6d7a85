package document

import (
	"cmp"
	"time"

	"github.com/godelayed/delayed"
	"github.com/godelayed/delayed/inspect"
)

// Entries is the periodic entries of queues.
type Entries struct {
	Entries []Entry `json:"entries"`
}

// Entry is a periodic entry.
type Entry struct {
	Queue         string     `json:"queue"`
	Name          string     `json:"name"`
	Spec          string     `json:"spec"`
	Zone          string     `json:"zone"`
	Function      string     `json:"function"`
	Owner         string     `json:"owner"`
	Paused        bool       `json:"paused"`
	Waiting       bool       `json:"waiting"`
	Next          *time.Time `json:"next"`
	Previous      *time.Time `json:"previous"`
	Overlap       string     `json:"overlap"`
	CatchUp       int        `json:"catch_up"`
	JitterSeconds float64    `json:"jitter_seconds"`
	From          *time.Time `json:"from"`
	Until         *time.Time `json:"until"`
}

// EntriesOf describes periodic entries.
func EntriesOf(entries []inspect.Entry) Entries {
	return Entries{each(entries, func(e *inspect.Entry) Entry {
		return Entry{
			Queue: e.Queue, Name: e.Name, Spec: e.Spec, Zone: e.Zone, Function: e.Function, Owner: e.Owner,
			Paused: e.Paused, Waiting: e.Waiting, Next: Stamp(e.Next), Previous: Stamp(e.Previous),
			Overlap: e.Overlap.String(), CatchUp: e.CatchUp, JitterSeconds: e.Jitter.Seconds(), From: Stamp(e.From),
			Until: Stamp(e.Until),
		}
	})}
}

// Ticks is the history of an entry.
type Ticks struct {
	Queue string `json:"queue"`
	Entry string `json:"entry"`
	Ticks []Tick `json:"ticks"`
}

// Tick is a tick of an entry, and what became of it.
type Tick struct {
	Tick   *time.Time `json:"tick"`
	At     *time.Time `json:"at"`
	Task   string     `json:"task"`
	Result string     `json:"result"` // enqueued, missed, overlap or queued
}

// TicksOf describes the ticks of an entry.
func TicksOf(queue, entry string, runs []delayed.PeriodicRun) Ticks {
	return Ticks{queue, entry, each(runs, func(r *delayed.PeriodicRun) Tick {
		return Tick{Stamp(r.Tick), Stamp(r.At), r.ID, cmp.Or(r.Skipped, "enqueued")}
	})}
}
