package document

import (
	"time"

	"github.com/godelayed/delayed/inspect"
	"github.com/godelayed/delayed/inspect/call"
)

// Audit is a part of the audit log.
type Audit struct {
	Records []Record `json:"records"`
}

// Record is a record of the audit log.
type Record struct {
	At     *time.Time `json:"at"`
	Actor  string     `json:"actor"`
	Action string     `json:"action"`
	Queue  string     `json:"queue"`
	Target string     `json:"target,omitempty"` // a worker, periodic entry, group or function
	State  string     `json:"state,omitempty"`
	Filter string     `json:"filter,omitempty"`
	IDs    []string   `json:"ids,omitempty"`
	More   int        `json:"more,omitempty"`
	Done   int        `json:"done"`
	Failed int        `json:"failed"`
}

// AuditOf describes records of the audit log.
func AuditOf(records []inspect.Record) Audit {
	return Audit{each(records, func(r *inspect.Record) Record {
		v := Record{
			At: Stamp(r.At), Actor: r.Actor, Action: r.Action, Queue: r.Queue, Target: r.Target, State: r.State,
			IDs: r.IDs, More: r.More, Done: r.Done, Failed: r.Failed,
		}
		if r.Filter != nil {
			v.Filter = call.FilterText(r.Filter)
		}
		return v
	})}
}
