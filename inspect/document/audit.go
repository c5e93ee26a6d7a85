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

// Acted is what an action on tasks has done.
type Acted struct {
	Action      string   `json:"action"`
	DryRun      bool     `json:"dry_run"`
	Interrupted bool     `json:"interrupted"`
	Reports     []Report `json:"reports"`
}

// Report is what an action has done in one queue.
type Report struct {
	Queue      string    `json:"queue"`
	State      string    `json:"state,omitempty"` // of the list
	Scanned    int       `json:"scanned"`
	Done       int       `json:"done"`
	Skipped    int       `json:"skipped"`
	Failed     []Failure `json:"failed"`
	FailedMore int       `json:"failed_more"`
}

// Failure is a task with which an action went wrong.
type Failure struct {
	ID    string `json:"id"`
	Error string `json:"error"`
}

// ReportOf describes what an action has done in a queue, to the tasks of a list if in names its state.
func ReportOf(queue, in string, r *inspect.Report) Report {
	return Report{
		Queue: queue, State: in, Scanned: r.Scanned, Done: r.Done, Skipped: r.Skipped, FailedMore: r.FailedMore,
		Failed: each(r.Failed, func(f *inspect.Failure) Failure { return Failure{f.ID, f.Err.Error()} }),
	}
}

// Did is what was done to a number of queues, workers, periodic entries or groups.
type Did struct {
	Action string   `json:"action"`
	Done   []string `json:"done"`
}

// Enqueued is which task was enqueued.
type Enqueued struct {
	ID     string `json:"id"`
	Queue  string `json:"queue"`
	Ended  bool   `json:"ended"` // of the command, with --wait
	Result any    `json:"result,omitempty"`
}
