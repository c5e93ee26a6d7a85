package cli

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/godelayed/delayed/cmd/delayed/internal/term"
	"github.com/godelayed/delayed/inspect"
	"github.com/godelayed/delayed/inspect/document"
	"github.com/godelayed/delayed/state"
)

// noon is when everything is shown.
var noon = time.Date(2026, 1, 31, 12, 0, 0, 0, time.UTC)

func before(d time.Duration) *time.Time { return document.Stamp(noon.Add(-d)) }

// shown are documents with all that they can show.
func shown() map[string]func(*term.Page) {
	task := document.Task{
		Queue: "mail", State: "retry", ID: "7c3q9v5tn8w2x0y4z6a1b3d5", Function: "example.com/app/mail.Welcome",
		Call: `mail.Welcome(42, "en", {Name: "Ann", Tags: ["a", "b", "c"]})`, Args: []any{42, "en"}, SizeBytes: 1234,
		Headers: map[string]string{"tenant": "acme"}, EnqueuedAt: before(90 * time.Second),
		Due: before(-time.Hour), Attempt: 3, Deaths: 1, Worker: "1d7df465b91b8f0d10194c57f7bccb49", Reason: "failed",
		Failures: []document.Attempt{
			{Attempt: 1, At: *before(time.Minute), Worker: "host:12:x", Error: "no\nroute"},
		},
		At: before(time.Second), FirstFailed: before(time.Minute), Error: "smtp: mailbox full\x1b[31m",
		Stack: "goroutine 7:\n\tmain.go:12", Options: &document.Options{TimeoutSeconds: 90, Lock: "u:x"},
		Progress: &document.Progress{Done: 3, Total: 10, Note: "third"}, Result: map[string]any{"n": 7},
	}
	other := document.Task{Queue: "mail", State: "retry", ID: "b", Problem: "the message cannot be read", Args: []any{}}
	queues := document.Queues{Queues: []document.Queue{
		{
			Name: "critical", Workers: 4, LatencySeconds: 0.25, Pending: 12, Active: 3, Scheduled: 1234567, Retry: 5,
			Archived: 2, Today: inspect.Counts{Processed: 987654, Failed: 321},
		},
		{Name: "mail", Paused: before(time.Hour), Parked: 3, Completed: 1, Workers: 1},
		{Name: strings.Repeat("long-name-", 8), Pending: 7, LatencySeconds: 90061},
		{Name: "old", Legacy: true, Pending: 1},
	}}
	figures := document.Figures{
		Runs: 1234567, Failed: 12, Archived: 3, Wait: document.Spread{Mean: 0.002, P50: 0.001, P95: 0.00234},
		Run: document.Spread{Mean: 1, P50: 0.5, P95: 61},
	}
	var minutes []document.TimeStats
	for i := range mostTimes {
		minutes = append(minutes, document.TimeStats{
			At: before(time.Duration(mostTimes-i) * time.Minute), Figures: document.Figures{Runs: i},
		})
	}
	workers := []document.Worker{
		document.WorkerOf(&inspect.Worker{
			ID: task.Worker, Host: "web-7.example.com", PID: 4711, Memory: 91 << 20, State: state.Running,
			Version: "v0.1.0", Program: "shop v1.2.3", Concurrency: 20, Started: *before(3 * time.Hour),
			Order: "critical=6, mail=3 (weighted)",
			Running: []inspect.Running{
				{Queue: "mail", ID: "a-2", Function: "app/mail.Send", Started: *before(3 * time.Second)},
				{Queue: "mail", ID: "a-1", Function: "app/mail.Digest", Started: *before(12 * time.Minute)},
			},
			Queues: []inspect.WorkerQueue{
				{Name: "critical", Alive: 12500 * time.Millisecond, Claims: 1},
				{Name: "mail", Alive: 13 * time.Second, Claims: 2},
			},
		}, []document.Task{task}),
		document.WorkerOf(&inspect.Worker{
			ID: "9ab8ce1c74e3f6816523a56f233575fa", Queues: []inspect.WorkerQueue{{Name: "mail", Claims: 4}},
		}, nil),
	}
	return map[string]func(*term.Page){
		"queues": of(printQueues, queues),
		"queue": of(printQueue, document.OneQueue{Queue: document.Queue{
			Name: "mail", Paused: before(time.Hour), Weight: 3, Pending: 7, Suspects: 1, LatencySeconds: 61,
			Legacy: true, MemoryBytes: new(int64), Today: inspect.Counts{Processed: 7, Failed: 1, Expired: 1},
		}}),
		"tasks": func(p *term.Page) {
			printLists(p, &document.Lists{Lists: []document.List{
				{Queue: "mail", State: "retry", Total: 120, Cursor: "7:x", Tasks: []document.Task{task, other}},
				{Queue: "mail", State: "active"},
			}}, false)
		},
		"task":    of(printFound, document.Found{Tasks: []document.Task{task, other}}),
		"workers": of(printWorkers, document.Workers{Workers: workers}),
		"worker":  func(p *term.Page) { printWorker(p, &workers[0]) },
		"functions": of(printFunctions, document.Functions{Functions: []document.Function{{
			Queue: "mail", Path: task.Function, Signature: "mail.Welcome(int64, string, mail.User)",
			Workers: []string{"a"}, Aliases: []string{"mail.Hello"},
		}}}),
		"cron": of(printEntries, document.Entries{Entries: []document.Entry{
			{
				Queue: "mail", Name: "digest", Spec: "30 7 * * mon-fri", Zone: "Europe/Berlin", Function: task.Function,
				Owner: "shop", Next: before(-5 * time.Hour), Previous: before(19 * time.Hour),
			},
			{Queue: "mail", Name: "sweep", Spec: "@every 1h", Zone: "UTC", Function: "app.Sweep", Paused: true},
		}}),
		"ticks": of(printTicks, document.Ticks{Ticks: []document.Tick{
			{Tick: before(0), At: before(0), Task: "digest@1", Result: "enqueued"}, {Result: "missed"},
		}}),
		"groups": of(printGroups, document.Groups{Groups: []document.Group{
			{Queue: "search", Key: "tenant-7", Function: "app/search.Index", Size: 12, Due: before(-time.Minute)},
		}}),
		"audit": of(printAudit, document.Audit{Records: []document.Record{
			{
				At: before(0), Actor: "ann@host", Action: "delete", Queue: "mail", State: "archived",
				Filter: "function x", Done: 9,
			},
			{
				At: before(0), Actor: "ann@host", Action: "move to slow", Queue: "mail", IDs: []string{"a", "b"},
				More: 3, Failed: 1,
			},
		}}),
		"stats": of(printStats, document.Stats{
			Queues: 3, Paused: 1, Workers: 1, LatencySeconds: 61, States: map[string]int{"pending": 5, "archived": 1},
			Today: inspect.Counts{Processed: 5, Lost: 1},
		}),
		"history": of(printHistory, document.History{Days: []document.Day{
			{Date: "2026-01-31", Counts: inspect.Counts{Processed: 5, Failed: 1}}, {Date: "2026-01-30"},
		}}),
		"acted": of(printActed, document.Acted{Action: "delete", Reports: []document.Report{{
			Queue: "mail", State: "archived", Done: 1200, Skipped: 1, FailedMore: 7,
			Failed: []document.Failure{{ID: "a\nb", Error: "inspect: not found"}},
		}}}),
		"monitor": of(printMonitor, monitorView{
			Status: "critical", code: monitorCritical, Queues: queues.Queues,
			Findings: []findingJSON{
				{"critical", "mail", "7 archived tasks, expected at most 0"}, {"warning", "old", "paused"},
			},
		}),
		"metrics": of(printMetrics, document.Metrics{
			Per: "minute", From: before(time.Hour), To: before(0),
			Functions: []document.FunctionStats{
				{Queue: "mail", Function: task.Function, Figures: figures, Graph: []int{0, 1, 2, 0, 9, 4}},
				{Queue: "a-queue-with-a-long-name", Graph: []int{1}},
			},
			Times: append(minutes, document.TimeStats{At: before(0), Figures: figures}),
		}),
		"scale": of(func(p *term.Page, v *document.Scale) { printScale(p, v, "") }, document.Scale{
			BacklogSeconds: 90, LatencySeconds: 61.5, WorkSeconds: 900, Pending: 1200, Unmeasured: 3, Workers: 2,
			Concurrency: 10, Busy: 7, TargetSeconds: 60, WantedWorkers: 3,
			Queues: []document.ScaleQueue{
				{
					Name: "mail", Pending: 1197, Active: 7, LatencySeconds: 61.5, MeanRunSeconds: 0.75,
					WorkSeconds: 900,
				},
				{Name: "new", Pending: 3, LatencySeconds: 1},
				{Name: "p", Paused: true},
			},
		}),
		"scale-wanted": func(p *term.Page) { printScale(p, &document.Scale{WantedWorkers: 3}, "wanted") },
		"bench": of(printBench, benchView{
			Concurrency: 100, Producers: 16, RoundTrip: benchTimings{200, 0.01, 20000, 4e-5, 5e-5, 6e-5, 7e-4},
			Enqueue:  benchTimings{20000, 0.2, 100000, 1e-4, 2e-4, 3e-4, 0.0123},
			Drain:    benchTimings{Tasks: 40000, Seconds: 0.1, PerSecond: 400000},
			Warnings: []string{"queue a\nb is at work"},
		}),
		"tail": several(
			of(printEvent, document.Event{
				At: before(0), Kind: "task failed", Queue: "mail", Worker: task.Worker, ID: task.ID,
				Function: task.Function, Attempt: 2, Took: document.Span(160 * time.Microsecond),
				Error: "mailbox\x1b[31m\nfull", Missed: 1200,
			}),
			of(printEvent, document.Event{
				At: before(0), Kind: "task started", Queue: "mail", ID: "a\nb", Function: "mail.tasks:welcome",
				Wait: document.Span(time.Minute),
			}),
			of(printEvent, document.Event{
				At: before(0), Kind: "task retried", Queue: "mail", Function: "F", Wait: document.Span(time.Minute),
				Reason: "snoozed",
			}),
			of(printEvent, document.Event{At: before(0), Kind: "worker paused", Queue: "mail", Worker: task.Worker}),
			of(printEvent, document.Event{Kind: document.KindMissed, Queue: "mail", Worker: task.Worker, Missed: 1}),
		),
		"doctor": of(printDiagnosis, document.Diagnosis{
			At: before(0), Queues: 2, Workers: 1,
			Problems: []document.DiagnosisProblem{
				{
					Level: "error", Name: "no workers", Queue: "mail", Text: "7 tasks wait, and no worker serves it",
					Since: before(5 * time.Minute), Advice: "start a worker", Command: "delayed workers ls",
				},
				{Level: "warning", Name: "versions", Queue: "mail", Others: 3, Text: "2 versions", Advice: "end it"},
				{Level: "warning", Name: "setting", Text: "no append-only file", Advice: "see docs/SERVERS.md"},
			},
		}),
	}
}

// of prints a document.
func of[T any](write func(*term.Page, *T), v T) func(*term.Page) {
	return func(p *term.Page) { write(p, &v) }
}

// several prints one thing after the other.
func several(prints ...func(*term.Page)) func(*term.Page) {
	return func(p *term.Page) {
		for _, write := range prints {
			write(p)
		}
	}
}

// TestGolden holds what people see against testdata: at 80 columns in colours, at 50, and where there is no terminal.
func TestGolden(t *testing.T) {
	t.Parallel()
	for name, write := range shown() {
		var b strings.Builder
		for _, p := range []*term.Page{{Width: 80, Color: true}, {Width: 50}, {}} {
			p.Now = noon
			write(p)
			fmt.Fprintf(&b, "== %d columns\n%s", p.Width, strings.ReplaceAll(p.String(), "\x1b", "␛"))
			if p.Width == 80 {
				checkWidth(t, name, p)
			}
		}
		file := filepath.Join("testdata", name+".txt")
		if flag.Lookup("update").Value.String() == "true" {
			if err := os.WriteFile(file, []byte(b.String()), 0o644); err != nil {
				t.Fatal(err)
			}
			continue
		}
		want, err := os.ReadFile(file)
		if err != nil || string(want) != b.String() {
			t.Errorf("%s is not what is shown now (%v):\n%s", file, err, b.String())
		}
	}
}

// sgr are the sequences of colours.
var sgr = regexp.MustCompile("\x1b\\[[0-9]*m")

// tables are the views whose lines must fit a terminal of 80 columns.
var tables = []string{"queues", "cron", "tasks", "groups", "functions", "history", "metrics", "scale", "bench"}

func checkWidth(t *testing.T, name string, p *term.Page) {
	t.Helper()
	plain := *p
	for line := range strings.SplitSeq(plain.String(), "\n") {
		for _, table := range tables {
			if n := term.Width(sgr.ReplaceAllString(line, "")); table == name && n > 80 {
				t.Errorf("%s: a line of %d columns: %s", name, n, line)
			}
		}
	}
}
