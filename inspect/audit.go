package inspect

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/user"
	"time"
)

// Record is an entry of the audit log: what somebody has done by an Inspector.
type Record struct {
	At     time.Time `json:"at"` // by the clock of the program that acted
	Actor  string    `json:"actor"`
	Action string    `json:"action"` // such as "delete" or "move to mail"
	Queue  string    `json:"queue,omitempty"`
	State  string    `json:"state,omitempty"`  // of the list that the action was done to
	Filter *Filter   `json:"filter,omitempty"` // likewise
	Target string    `json:"target,omitempty"` // of other acts: a worker, periodic entry, group or function
	IDs    []string  `json:"ids,omitempty"`    // of single tasks, the first ten
	More   int       `json:"more,omitempty"`   // how many other ids there were
	Done   int       `json:"done"`             // tasks to which it was done
	Failed int       `json:"failed,omitempty"`
}

// mostIDs bounds Record.IDs.
const mostIDs = 10

// note writes what was done to the audit log.
func (a *actor) note(ctx context.Context, r *Record) error {
	r.Queue, r.Action, r.Done, r.Failed = a.store.Name, a.action.String(), a.report.Done, a.report.failed()
	if n := len(r.IDs); n > mostIDs {
		r.IDs, r.More = r.IDs[:mostIDs], n-mostIDs
	}
	return a.ins.note(ctx, r)
}

// note completes a record and writes it to the audit log, also when ctx has ended: what it is about has happened.
func (ins *Inspector) note(ctx context.Context, r *Record) error {
	r.At, r.Actor = time.Now().Truncate(time.Millisecond), ins.cfg.Actor
	if r.Actor == "" {
		r.Actor = currentUser()
	}
	if r.Filter != nil && r.Filter.IsZero() {
		r.Filter = nil
	}
	b, err := json.Marshal(r)
	if err == nil {
		err = ins.registry.Note(context.WithoutCancel(ctx), b)
	}
	if err != nil {
		return fmt.Errorf("inspect: what was done is not in the audit log: %w", err)
	}
	return nil
}

// currentUser returns the user of this process and its host.
func currentUser() string {
	name := "unknown"
	if u, err := user.Current(); err == nil {
		name = u.Username
	}
	host, err := os.Hostname()
	if err != nil {
		return name
	}
	return name + "@" + host
}

// Audit returns records of the audit log, the latest first, after skipping some. Redis keeps the last 10,000.
func (ins *Inspector) Audit(ctx context.Context, skip, n int) ([]Record, error) {
	if err := ins.check(ctx); err != nil {
		return nil, err
	}
	if skip < 0 || n < 1 || n > mostLimit {
		return nil, fmt.Errorf("inspect: Audit(%d, %d): expected 0 or more to skip, and 1 to %d records", skip, n,
			mostLimit)
	}
	entries, err := ins.registry.Noted(ctx, skip, n)
	if err != nil {
		return nil, err
	}
	records := make([]Record, 0, len(entries))
	for _, e := range entries {
		var r Record
		if json.Unmarshal(e, &r) == nil { // else somebody else has written it
			records = append(records, r)
		}
	}
	return records, nil
}
