package web

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/godelayed/delayed/inspect"
	"github.com/godelayed/delayed/state"
)

var troubleTime = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// aQueue returns a queue with one worker.
func aQueue(change func(*inspect.Queue)) inspect.Queue {
	q := inspect.Queue{Name: "mail", At: troubleTime, Workers: 1}
	if change != nil {
		change(&q)
	}
	return q
}

// aWorker returns a worker of the queue "mail" with four executors.
func aWorker(id string, claims int, functions ...string) inspect.Worker {
	w := inspect.Worker{
		ID: id, Queues: []inspect.WorkerQueue{{Name: "mail", Alive: time.Second, Claims: claims}}, Concurrency: 4,
		State: state.Running, Started: troubleTime.Add(-time.Hour), Version: "0.1.0", Program: "mailer v1",
	}
	for _, f := range functions {
		w.Running = append(w.Running, inspect.Running{Queue: "mail", Function: f})
	}
	return w
}

func TestTroubles(t *testing.T) {
	t.Parallel()
	old := func(q *inspect.Queue) { q.Pending, q.Latency = 1234, 4*time.Minute }
	older := func(q *inspect.Queue) { q.Pending, q.Latency = 1, 10*time.Minute }
	build := "example.com/app/report.Build"
	dead := aWorker("w-1", 2)
	dead.Queues[0].Alive = 0
	other := aWorker("w-2", 0)
	other.Program = "mailer v2"
	young := other
	young.Started = troubleTime.Add(-time.Minute)
	python := other
	python.Version, python.Program = "godelayed 0.1.0", ""
	snake := python
	snake.Version = "godelayed 0.2.0"
	paused := aWorker("w-1", 0)
	paused.State = state.Paused
	for _, test := range []struct {
		name    string
		queue   func(*inspect.Queue)
		workers []inspect.Worker
		signs   signs
		want    []string // "!" before those that are bad
	}{
		{name: "all is well"},
		{
			name: "no workers", queue: func(q *inspect.Queue) { q.Workers, q.Scheduled, q.Retry = 0, 1, 2 },
			want: []string{"!3 tasks wait, and no worker serves it"},
		},
		{name: "no workers of a legacy queue", queue: func(q *inspect.Queue) {
			q.Workers, q.Pending, q.Legacy = 0, 1, true
		}},
		{name: "no workers and nothing to do", queue: func(q *inspect.Queue) { q.Workers, q.Archived = 0, 10 }},
		{name: "a short wait", queue: func(q *inspect.Queue) { q.Pending, q.Latency = 1, 29*time.Second }},
		{
			name: "busy with one function", queue: old,
			workers: []inspect.Worker{aWorker("w-1", 4, build, build, build, build)},
			want: []string{
				"the oldest of 1\u202f234 pending tasks has waited 4 min, " +
					"and all 4 executors are busy with report.Build",
			},
		},
		{
			name: "busy with several", queue: older,
			workers: []inspect.Worker{aWorker("w-1", 9, build, build, "x"), aWorker("w-2", 4, "x")},
			want: []string{
				"!the oldest of 1 pending task has waited 10 min, and all 8 executors are busy, " +
					"2 of them for more than a second with report.Build",
			},
		},
		{
			name: "not busy", queue: older, workers: []inspect.Worker{aWorker("w-1", 3, build)},
			want: []string{"!the oldest of 1 pending task has waited 10 min"},
		},
		{
			name: "paused workers", queue: older, workers: []inspect.Worker{paused},
			want: []string{"!the oldest of 1 pending task has waited 10 min, and all its workers are paused, or stop"},
		},
		{
			name: "a paused queue with tasks", queue: func(q *inspect.Queue) {
				older(q)
				q.Paused = troubleTime.Add(-5 * time.Minute)
			},
			want: []string{"paused for 5 min, and 1 task waits"},
		},
		{name: "a short pause", queue: func(q *inspect.Queue) { q.Paused = troubleTime.Add(-59 * time.Minute) }},
		{
			name: "a long pause", queue: func(q *inspect.Queue) { q.Paused = troubleTime.Add(-3 * time.Hour) },
			want: []string{"paused for 3 h"},
		},
		{
			name: "suspects", queue: func(q *inspect.Queue) { q.Suspects = 2 },
			want: []string{"2 pending tasks have died with a worker"},
		},
		{name: "an archive with room", queue: func(q *inspect.Queue) { q.Archived = 8_999 }},
		{
			name: "a full archive", queue: func(q *inspect.Queue) { q.Archived = 9_000 },
			want: []string{"9\u202f000 archived tasks: unless they are configured otherwise"},
		},
		{
			name: "lost claims", queue: func(q *inspect.Queue) { q.Today.Lost = 1 },
			want: []string{"1 task has run twice today"},
		},
		{
			name: "a key of a wrong type", queue: func(q *inspect.Queue) {
				q.Err, q.Pending, q.Workers = errors.New("WRONGTYPE\x1b[31m"), 5, 0
			},
			want: []string{`!another program uses one of its keys: WRONGTYPE\x1b[31m; rename`},
		},
		{
			name: "a dead worker", workers: []inspect.Worker{dead},
			want: []string{"a worker has died and left 2 tasks: the others will take over"},
		},
		{
			name: "the last worker is dead", queue: func(q *inspect.Queue) { q.Workers = 0 },
			workers: []inspect.Worker{dead}, want: []string{"!a worker has died and left 2 tasks, and no other"},
		},
		{
			name: "two versions", workers: []inspect.Worker{aWorker("w-1", 0), other},
			want: []string{
				"2 versions of workers serve it: mailer v1 with delayed 0.1.0 and mailer v2 with delayed 0.1.0",
			},
		},
		{name: "a deploy", workers: []inspect.Worker{aWorker("w-1", 0), young}},
		{
			name: "two versions of Python", workers: []inspect.Worker{aWorker("w-1", 0), python, snake},
			want: []string{"2 versions of workers serve it: godelayed 0.1.0 and godelayed 0.2.0"},
		},
		{name: "Go and Python", workers: []inspect.Worker{aWorker("w-1", 0), python}},
		{name: "few failures", signs: signs{failing: []failing{
			{"mail", "a", 4, 4}, {"mail", "b", 1000, 99}, {"mail", "c", 9, 3},
		}}},
		{
			name: "failing functions", signs: signs{failing: []failing{
				{"mail", "app/a.Some", 100, 10}, {"mail", "app/b.All\x1b", 5, 5}, {"mail", "", 10, 5},
			}},
			want: []string{
				`!5 of 5 runs of b.All\x1b failed in the last 15 min (100 %)`,
				"!5 of 10 runs of other functions failed",
				"10 of 100 runs of a.Some failed",
			},
		},
		{
			name: "a late entry", signs: signs{late: []lateEntry{{"mail", "nightly\n", 3 * time.Minute}}},
			want: []string{`!its periodic entry nightly\n should have ticked 3 min ago`},
		},
		{
			name: "samples", signs: signs{samples: []sample{
				{Queue: "mail", Unreadable: 1},
				{Queue: "mail", Parked: 9, Why: map[string]int{"a.B (unknown function)": 3}},
				{Queue: "mail", Parked: 5, Why: map[string]int{"a.B (unknown fields)": 2, "c.D (unknown function)": 3}},
				{Queue: "mail", Parked: 1, Why: map[string]int{}},
			}},
			want: []string{
				"!9 tasks are parked because no worker can run them: a.B (unknown function)",
				"!5 tasks are parked because no worker can run them: for example of c.D (unknown function)",
				"1 task at the head of the queue cannot be read; workers archive it",
			},
		},
		{
			name: "the worst first", queue: func(q *inspect.Queue) {
				older(q)
				q.Today.Lost, q.Suspects = 1, 1
			},
			signs: signs{failing: []failing{{"mail", "a", 5, 5}}, samples: []sample{{
				Queue: "mail", Parked: 1, Why: map[string]int{"x": 1},
			}}},
			want: []string{
				"!1 task is parked", "!the oldest of", "!5 of 5 runs", "1 pending task has died", "1 task has run",
			},
		},
	} {
		s := test.signs
		s.queues, s.workers = []inspect.Queue{aQueue(test.queue)}, test.workers
		var got []string
		for _, tr := range troubles(&s) {
			text := tr.Text
			if tr.Bad {
				text = "!" + text
			}
			got = append(got, text)
			if tr.Queue != "mail" || tr.Href == "" || tr.Action == "" || strings.HasSuffix(tr.Text, ".") {
				t.Errorf("%s: %+v", test.name, tr)
			}
		}
		if !slices.EqualFunc(got, test.want, strings.HasPrefix) {
			t.Errorf("%s: found %q, expected %q", test.name, got, test.want)
		}
	}
}

// One line tells of all queues that the same versions of workers serve.
func TestVersionsOfManyQueues(t *testing.T) {
	t.Parallel()
	a, b := aWorker("w-1", 0), aWorker("w-2", 0)
	b.Version = "0.2.0"
	for _, name := range []string{"a", "b"} {
		q := inspect.WorkerQueue{Name: name, Alive: time.Second}
		a.Queues, b.Queues = append(a.Queues, q), append(b.Queues, q)
	}
	all := troubles(&signs{queues: []inspect.Queue{aQueue(nil)}, workers: []inspect.Worker{a, b}})
	if len(all) != 1 || all[0].Queue != "a" || !strings.HasSuffix(all[0].Text, "; likewise 2 other queues") {
		t.Errorf("found %+v", all)
	}
}
