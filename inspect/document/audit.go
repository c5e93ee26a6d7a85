package document

import (
	"maps"
	"slices"
	"strconv"
	"strings"
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
	v := Audit{Records: []Record{}}
	for i := range records {
		r := &records[i]
		one := Record{
			At: Stamp(r.At), Actor: r.Actor, Action: r.Action, Queue: r.Queue, Target: r.Target, State: r.State,
			IDs: r.IDs, More: r.More, Done: r.Done, Failed: r.Failed,
		}
		if r.Filter != nil {
			one.Filter = FilterText(r.Filter)
		}
		v.Records = append(v.Records, one)
	}
	return v
}

// FilterText describes a filter in words, "function Welcome, error timeout"; "" for one that matches all tasks.
func FilterText(f *inspect.Filter) string {
	var parts []string
	add := func(name, value string) {
		if value != "" {
			parts = append(parts, name+" "+call.Clip(value, 60))
		}
	}
	add("function", f.Function)
	add("id", f.ID)
	add("error", f.Error)
	add("reason", f.Reason)
	add("worker", f.Worker)
	add("group", f.Group)
	for _, key := range slices.Sorted(maps.Keys(f.Headers)) {
		add("header", key+"="+f.Headers[key])
	}
	add("argument", f.Arg)
	add("text", f.Text)
	if f.OlderThan > 0 {
		add("older than", call.FormatDuration(f.OlderThan))
	}
	if f.YoungerThan > 0 {
		add("newer than", call.FormatDuration(f.YoungerThan))
	}
	if f.MinAttempt > 0 {
		add("attempt from", strconv.Itoa(f.MinAttempt))
	}
	if f.MaxAttempt > 0 {
		add("attempt up to", strconv.Itoa(f.MaxAttempt))
	}
	if f.MinDeaths > 0 {
		add("deaths from", strconv.Itoa(f.MinDeaths))
	}
	return strings.Join(parts, ", ")
}
