package document

import (
	"reflect"
	"time"

	"github.com/godelayed/delayed/inspect"
	"github.com/godelayed/delayed/inspect/call"
	"github.com/godelayed/delayed/state"
)

// Task is a task.
type Task struct {
	Queue       string            `json:"queue"`
	State       string            `json:"state"`
	ID          string            `json:"id"`       // empty if its message carries none
	Function    string            `json:"function"` // its path
	Call        string            `json:"call"`     // the call as code, clipped and escaped
	Python      bool              `json:"python"`
	Args        []any             `json:"args"`             // bytes are in base64, structs are objects
	Kwargs      map[string]any    `json:"kwargs,omitempty"` // of a Python function
	Headers     map[string]string `json:"headers,omitempty"`
	SizeBytes   int               `json:"size_bytes"`
	Options     *Options          `json:"options,omitempty"`
	EnqueuedAt  *time.Time        `json:"enqueued_at"`      // by the producer's clock
	Due         *time.Time        `json:"due"`              // of parked, archived and completed tasks their end
	Attempt     int               `json:"attempt"`          // which attempt the next or present run is
	Deaths      int               `json:"deaths"`           // workers that died with it, in the last 72 h
	Worker      string            `json:"worker,omitempty"` // that has it, or had it last
	ClaimedAt   *time.Time        `json:"claimed_at,omitempty"`
	StartedAt   *time.Time        `json:"started_at,omitempty"` // if it has run for more than a second
	Reason      state.Reason      `json:"reason,omitempty"`     // why it is in its state
	At          *time.Time        `json:"at,omitempty"`         // when the reason became known
	FirstFailed *time.Time        `json:"first_failed_at,omitempty"`
	BeganAt     *time.Time        `json:"began_at,omitempty"` // when the successful run began
	Error       string            `json:"error,omitempty"`
	Stack       string            `json:"stack,omitempty"`    // of its last panic
	Failures    []Attempt         `json:"failures,omitempty"` // its last attempts that failed, oldest first
	Result      any               `json:"result,omitempty"`   // of a completed task
	Progress    *Progress         `json:"progress,omitempty"`
	Problem     string            `json:"problem,omitempty"` // why its function or arguments are missing
}

// Attempt is an attempt that has failed.
type Attempt struct {
	Attempt int       `json:"attempt"` // 1 for the first
	At      time.Time `json:"at"`      // when it ended
	Worker  string    `json:"worker"`
	Error   string    `json:"error"`
	Stack   string    `json:"stack,omitempty"`
}

// Progress is the last progress that a task has reported.
type Progress struct {
	Done  int64  `json:"done"`
	Total int64  `json:"total"`
	Note  string `json:"note"`
}

// Options are the options of a task.
type Options struct {
	MaxRetry          *int       `json:"max_retry,omitempty"`
	TimeoutSeconds    float64    `json:"timeout_seconds,omitempty"`
	Deadline          *time.Time `json:"deadline,omitempty"`
	Expiry            *time.Time `json:"expiry,omitempty"`
	RetryUntil        *time.Time `json:"retry_until,omitempty"`
	BackoffSeconds    []float64  `json:"backoff_seconds,omitempty"`
	MaxBackoffSeconds float64    `json:"max_backoff_seconds,omitempty"`
	RetentionSeconds  float64    `json:"retention_seconds,omitempty"`
	KeepResultSeconds float64    `json:"keep_result_seconds,omitempty"`
	Lock              string     `json:"lock,omitempty"`
	Group             string     `json:"group,omitempty"`
}

// TaskOf describes a task.
func TaskOf(t *inspect.Task) Task {
	j := Task{
		Queue: t.Queue, State: t.State.String(), ID: t.ID, Function: t.Function, Call: t.Call, Python: t.Python,
		Args: []any{}, Headers: t.Headers, SizeBytes: t.Size, EnqueuedAt: Stamp(t.EnqueuedAt), Due: Stamp(t.Due),
		Attempt: t.Attempt, Deaths: t.Deaths, Worker: t.Worker, ClaimedAt: Stamp(t.Claimed), Reason: t.Reason,
		StartedAt: Stamp(t.Started), At: Stamp(t.At), FirstFailed: Stamp(t.FirstFailed), BeganAt: Stamp(t.Began),
		Error: t.Error, Stack: t.Stack,
		Result: call.Plain(t.Result), Problem: t.Problem, Options: OptionsOf(&t.Options),
	}
	for _, arg := range t.Args {
		j.Args = append(j.Args, call.Plain(arg))
	}
	for _, f := range t.Failures {
		j.Failures = append(j.Failures, Attempt{f.Attempt, f.At, f.Worker, f.Error, f.Stack})
	}
	if len(t.Kwargs) > 0 {
		j.Kwargs, _ = call.Plain(t.Kwargs).(map[string]any)
	}
	if t.Done != 0 || t.Total != 0 || t.Note != "" {
		j.Progress = &Progress{t.Done, t.Total, t.Note}
	}
	return j
}

// OptionsOf describes the options of a task; nil if it has none.
func OptionsOf(o *inspect.Options) *Options {
	j := &Options{
		MaxRetry: o.MaxRetry, TimeoutSeconds: o.Timeout.Seconds(), Deadline: Stamp(o.Deadline),
		Expiry: Stamp(o.Expiry), RetryUntil: Stamp(o.RetryUntil), MaxBackoffSeconds: o.RetryCap.Seconds(),
		RetentionSeconds: o.Retention.Seconds(), KeepResultSeconds: o.KeepResult.Seconds(),
		Lock: o.Lock, Group: o.Group,
	}
	for _, d := range o.RetryDelays {
		j.BackoffSeconds = append(j.BackoffSeconds, d.Seconds())
	}
	if reflect.ValueOf(*j).IsZero() {
		return nil
	}
	return j
}

// Found is the tasks that have an id: one in each queue at most.
type Found struct {
	Tasks []Task `json:"tasks"`
}

// FoundOf describes tasks that have an id.
func FoundOf(tasks []inspect.Task) Found { return Found{each(tasks, TaskOf)} }

// Lists is a number of lists of tasks.
type Lists struct {
	Lists []List `json:"lists"`
}

// List is a page of a list of tasks.
type List struct {
	Queue   string `json:"queue"`
	State   string `json:"state"`
	Total   int    `json:"total"`   // tasks in that state, whether the filter matches them or not
	Scanned int    `json:"scanned"` // tasks that were looked at
	Cursor  string `json:"cursor"`  // of the next page; empty after the last
	Tasks   []Task `json:"tasks"`
}

// ListOf describes a page of a list.
func ListOf(queue string, in state.Task, page *inspect.Page) List {
	return List{
		Queue: queue, State: in.String(), Total: page.Total, Scanned: page.Scanned, Cursor: page.Cursor,
		Tasks: each(page.Tasks, TaskOf),
	}
}
