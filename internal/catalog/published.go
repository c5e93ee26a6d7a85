package catalog

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/godelayed/delayed/internal/nearest"
)

// MostBytes bounds the list that is read of one worker. None that this package's workers write is as large.
const MostBytes = 1 << 20

// Listing is the list that a worker has published, read.
type Listing struct {
	List
	byPath map[string]*Function // by aliases, too
}

// ParseListing reads the list of a worker. It returns nil if that is missing, too large, or of another version: such a
// worker may know any function.
func ParseListing(b []byte) *Listing {
	l := new(Listing)
	if len(b) == 0 || len(b) > MostBytes || json.Unmarshal(b, &l.List) != nil || l.Version != Version {
		return nil
	}
	l.byPath = make(map[string]*Function, len(l.Functions))
	for i := range l.Functions {
		f := &l.Functions[i]
		// What a strange worker says must not lead behind the parameters.
		f.Variadic = f.Variadic && len(f.Params) > 0
		f.Optional = min(max(f.Optional, 0), len(f.Params))
		for _, path := range f.Aliases {
			l.byPath[path] = f
		}
		l.byPath[f.Path] = f
	}
	return l
}

// has reports whether there is a function of the language that a path is of.
func (l *Listing) has(path string) bool {
	python := strings.Contains(path, ":")
	return slices.ContainsFunc(l.Functions, func(f Function) bool { return f.python() == python })
}

// Published is what the workers of a queue publish together, each different list once. nil stands for workers that
// have published nothing that can be read.
type Published []*Listing

// Check returns an error if no worker takes a call, as far as they have published: a *MisfitError, which is about the
// first of several versions, or an *UnknownError. Nothing is wrong if a worker may know the function without having
// published it, or if there is none for the language of the function. counted is false if the arguments are unknown.
func (p Published) Check(path string, args []any, kwargs map[string]any, counted bool) error {
	var misfit error
	open, asked := false, false
	for _, l := range p {
		if l == nil {
			open = true
			continue
		}
		f := l.byPath[path]
		if f == nil {
			open = open || l.More > 0
			asked = asked || l.has(path)
			continue
		}
		if !counted {
			return nil
		}
		err := f.Fit(l.Types, args, kwargs)
		if err == nil {
			return nil
		}
		if misfit == nil {
			misfit = err
		}
	}
	switch {
	case open:
		return nil
	case misfit != nil:
		return misfit
	case asked:
		return p.unknown(path)
	}
	return nil
}

// UnknownError says that no worker has published a function.
type UnknownError struct {
	Near  string // the path of the function that was probably meant; "" for none
	Known []string
}

// Error implements error.
func (e *UnknownError) Error() string {
	const most = 5
	switch n := len(e.Known); {
	case e.Near != "":
		return "expected a function that a worker of the queue has registered; did you mean " + e.Near + "?"
	case n > most:
		return fmt.Sprintf("expected a function that a worker of the queue has registered: %s, or one of %d others",
			strings.Join(e.Known[:most], ", "), n-most)
	}
	return "expected a function that a worker of the queue has registered: " + strings.Join(e.Known, ", ")
}

// unknown returns the error about a path that nobody has published.
func (p Published) unknown(path string) error {
	python := strings.Contains(path, ":")
	e := new(UnknownError)
	var names []string
	for _, l := range p {
		if l == nil {
			continue
		}
		for name, f := range l.byPath {
			if f.python() == python {
				names = append(names, name)
				if name == f.Path {
					e.Known = append(e.Known, name)
				}
			}
		}
	}
	slices.Sort(names)
	slices.Sort(e.Known)
	e.Known = slices.Compact(e.Known)
	e.Near = nearest.Path(path, slices.Compact(names))
	return e
}

// Status is what a worker publishes about itself on one of its queues.
type Status struct {
	Version     int       `json:"version"`
	Started     int64     `json:"started"` // ms since 1970
	Library     string    `json:"library"` // version
	Program     string    `json:"program"` // version and revision
	Concurrency int       `json:"concurrency"`
	Queues      string    `json:"queues"`           // its order of queues, for people
	State       string    `json:"state"`            // as state.Worker writes it
	Memory      int64     `json:"memory,omitempty"` // bytes of the process, about; 0: unknown
	Running     []Running `json:"running,omitempty"`
	More        int       `json:"more,omitempty"` // how many running tasks did not fit
}

// Running is a task that has run for a while.
type Running struct {
	Token    string `json:"token"`
	ID       string `json:"id,omitempty"`
	Function string `json:"function"`
	Started  int64  `json:"started"` // ms since 1970
}

// Broadcast is what a worker publishes while somebody watches a queue.
type Broadcast struct {
	Version int    `json:"version"`
	Worker  string `json:"worker"`
	Missed  int    `json:"missed,omitempty"` // events just before these that were too many to be published
	// Since is when the worker was asked for events and had not been asked before, in ms since 1970, and Before how
	// many it has had since then before these, published or not. So who watches knows what was lost on the way.
	Since  int64   `json:"since"`
	Before int     `json:"before"`
	Events []Event `json:"events"`
}

// Event is something that has happened in a worker.
type Event struct {
	Kind     string `json:"kind"` // as event.Kind writes it
	At       int64  `json:"at"`   // ms since 1970
	ID       string `json:"id,omitempty"`
	Function string `json:"function,omitempty"`
	Attempt  int    `json:"attempt,omitempty"`
	Took     int64  `json:"took,omitempty"` // how long the handler ran, µs
	Wait     int64  `json:"wait,omitempty"` // until it is tried again, or since it was enqueued, ms
	Reason   string `json:"reason,omitempty"`
	Error    string `json:"error,omitempty"`
}
