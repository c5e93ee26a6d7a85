//go:build unix

package itest_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/gomodule/redigo/redis"

	"github.com/godelayed/delayed"
	"github.com/godelayed/delayed/internal/redistest"
)

// TestPythonTasksAreParked: a Go worker claims Python tasks of every shape and parks them unchanged.
func TestPythonTasksAreParked(t *testing.T) {
	t.Parallel()
	server := redistest.Shared(t)
	queue := redistest.Name(t)
	runPython(t, "producer.py", "--url", server.URL(), "--queue", queue, "shapes", "--only", "py-")
	want := pendingOf(t, server, queue)
	if len(want) < 10 {
		t.Fatalf("expected ten tasks and more, found %d", len(want))
	}
	stop := startWorkerHere(t, handle(t, server).WithLegacy(), delayed.WorkerConfig{Queues: delayed.Strict{queue}})
	waitFor(t, "all tasks to be parked", func() bool { return len(filedIn(t, server, queue, "_parked")) == len(want) })
	stop()
	sameMessages(t, "parked", filedIn(t, server, queue, "_parked"), want)
	redistest.CheckInvariants(t, server.Dial(t), queue, redistest.Invariants{Idle: true})
}

// TestPythonTasksAreHandedOn: a Go worker with a queue for Python tasks claims them among Go tasks, and each task runs
// on a worker of its language.
func TestPythonTasksAreHandedOn(t *testing.T) {
	t.Parallel()
	server := redistest.Shared(t)
	queue, pyQueue := redistest.Name(t), redistest.Name(t)
	py := newPyLedger(t)
	runPython(t, "producer.py", "--url", server.URL(), "--queue", pyQueue, "shapes", "py-kwargs-only")
	runPython(t, "producer.py", "--url", server.URL(), "--queue", queue, "shapes", "--only", "py-")
	// They join the end of the queue.
	want := append(pendingOf(t, server, pyQueue), pendingOf(t, server, queue)...)
	var r recorded
	stop := startWorkerHere(t, handle(t, server).WithLegacy(),
		delayed.WorkerConfig{Queues: delayed.Strict{queue}, PythonQueue: pyQueue}, r.functions()...)
	waitFor(t, "all tasks to be handed on", func() bool { return len(pendingOf(t, server, pyQueue)) == len(want) })
	if got := pendingOf(t, server, pyQueue); !slices.Equal(got, want) {
		t.Errorf("expected the messages unchanged and in order:\n%q\nfound\n%q", want, got)
	}
	redistest.CheckInvariants(t, server.Dial(t), pyQueue, redistest.Invariants{})

	runPython(t, "producer.py", "--url", server.URL(), "--queue", queue, "shapes", "one-int", "py-path", "two")
	worker := startPython(t, py.env(), "worker.py", "--url", server.URL(), "--queue", pyQueue)
	waitFor(t, "Python to run its tasks", func() bool { return len(py.calls(t)) == len(want)+1 })
	waitFor(t, "Go to run its tasks", func() bool { return len(r.all()) == 2 })
	stopPython(t, worker)
	stop()
	for _, name := range []string{queue, pyQueue} {
		redistest.CheckInvariants(t, server.Dial(t), name, redistest.Invariants{Idle: true})
		if n := len(filedIn(t, server, name, "_parked")) + len(archivedIn(t, server, name)); n > 0 {
			t.Errorf("queue %s: %d tasks are parked or archived, expected none", name, n)
		}
	}
}

// TestUndecodableBytesAreArchived puts bytes into a queue that old versions and other programs could leave there.
func TestUndecodableBytesAreArchived(t *testing.T) {
	t.Parallel()
	garbage := map[string]string{
		"reserved code":             "\xc1",
		"empty":                     "",
		"text":                      "hello",
		"JSON":                      `{"func": "x"}`,
		"pickle of delayed 0.11":    "\x80\x04\x95\x10\x00\x00\x00\x00\x00\x00\x00(\x8c\x04test\x94K\x01t\x94.",
		"cut in the middle":         "\x92\xa3foo",
		"two values":                "\x91\xa3foo\xc0",
		"array without path":        "\x90",
		"path that is a number":     "\x91\x01",
		"payload that is text":      "\x92\xa3foo\xa3bar",
		"cut payload":               "\x92\xa3foo\xc4\x01\x92",
		"Go task of four":           "\x94\xa3foo\xc0\x80\x00",
		"Python task of six":        "\x96\xa3m:f\x90\x80\x00\x80\x00",
		"Python args not a list":    "\x92\xa3m:f\x01",
		"Python retry not a number": "\x94\xa3m:f\x90\x80\xa1x",
		"nested too deep":           "\x92\xa3m:f" + strings.Repeat("\x91", 100_000) + "\xc0",
		"longer than allowed":       "\x92\xa3m:f\x91\xdb\x00\x20\x00\x00" + strings.Repeat("x", 2<<20),
	}
	server := redistest.Shared(t)
	queue := redistest.Name(t)
	var want []string
	for _, message := range garbage {
		want = append(want, message)
		server.Do(t, "RPUSH", queue, message)
		server.Do(t, "RPUSH", queue+"_noti", "1")
	}
	runPython(t, "producer.py", "--url", server.URL(), "--queue", queue, "shapes", "one-int")
	var r recorded
	stop := startWorkerHere(t, handle(t, server).WithLegacy(), delayed.WorkerConfig{Queues: delayed.Strict{queue}},
		r.functions()...)
	waitFor(t, "the good task behind them", func() bool { return len(r.all()) == 1 })
	waitFor(t, "all of them to be archived", func() bool { return len(archivedIn(t, server, queue)) == len(want) })
	stop()
	sameMessages(t, "archived", archivedIn(t, server, queue), want)
	if n := count(t, server, queue, "archived"); n != len(want) {
		t.Errorf("expected %d archived tasks in the counters, found %d", len(want), n)
	}
	redistest.CheckInvariants(t, server.Dial(t), queue, redistest.Invariants{Idle: true})
}

func pendingOf(t *testing.T, server *redistest.Server, queue string) []string {
	t.Helper()
	messages, err := redis.Strings(server.Do(t, "LRANGE", queue, 0, -1), nil)
	if err != nil {
		t.Fatal(err)
	}
	return messages
}

// sameMessages compares messages in any order.
func sameMessages(t *testing.T, where string, got, want []string) {
	t.Helper()
	got, want = slices.Sorted(slices.Values(got)), slices.Sorted(slices.Values(want))
	if !slices.Equal(got, want) {
		t.Errorf("%s: expected the messages\n%.200q\nfound\n%.200q", where, want, got)
	}
}
