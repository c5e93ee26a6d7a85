//go:build unix

package itest_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/godelayed/delayed"
	"github.com/godelayed/delayed/internal/childproc"
	"github.com/godelayed/delayed/internal/redistest"
	"github.com/godelayed/delayed/state"
)

// TestPythonPoisonAmongInnocents: of the tasks of a Python worker, in threads or in processes, all that kill their
// process are archived; every other one runs, and none of those is archived. Go's sweeper reads the notes of Python
// workers.
func TestPythonPoisonAmongInnocents(t *testing.T) {
	together(t)
	for _, test := range []struct {
		name      string
		args      []string
		goSweeper bool
	}{
		{"threads", []string{"--processes", "0"}, false},
		{"threads, swept by Go", []string{"--processes", "0", "--no-sweeper"}, true},
		{"processes", nil, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			together(t)
			poisons, slow, quick := inChaos(1, 15), inChaos(2, 6), inChaos(20, 400)
			server := redistest.Start(t)
			queue := redistest.Name(t)
			py := newPyLedger(t)
			args := append([]string{"--queue", queue, "--concurrency", "5", "--heartbeat-life", "1"}, test.args...)
			start := func() *childproc.Process { return startGodelayed(t, py.env(), server, args...) }
			q, err := delayed.OpenQueue(queue, handle(t, server), delayed.QueueConfig{})
			if err != nil {
				t.Fatal(err)
			}
			var names []string
			var poison []*delayed.Ref
			for i := range poisons + slow + quick {
				if i < poisons {
					ref, err := q.Enqueue(t.Context(), delayed.NewPyTask("interop:poison", nil, nil))
					if err != nil {
						t.Fatal(err)
					}
					poison = append(poison, ref)
					continue
				}
				millis := 10
				if i < poisons+slow {
					millis = inChaos(1000, 3000)
				}
				name := fmt.Sprintf("p%06d", i)
				names = append(names, name)
				if _, err := q.Enqueue(t.Context(),
					delayed.NewPyTask(touchPyPath, []any{name, millis}, nil)); err != nil {
					t.Fatal(err)
				}
			}
			if test.goSweeper {
				_, stop := startSweeper(t, server, time.Second, time.Second, queue)
				defer stop()
			}
			worker, deaths := start(), 0
			limit := inChaos(4*time.Minute, 20*time.Minute)
			waitForAtMost(t, limit, "all poison to be archived, all others done, the dead forgotten", func() bool {
				if !worker.Running() {
					if worker.ExitCode() != -1 {
						t.Fatalf("the worker ended: %s\n%s", worker.Describe(), worker.Output())
					}
					deaths++
					worker = start()
				}
				return len(archivedIn(t, server, queue)) == poisons &&
					count(t, server, queue, "processed") == len(names) &&
					server.Do(t, "SCARD", queue+"_workers") == int64(1)
			})
			stopPython(t, worker)
			if lost := py.read(t).Of("end").Missing(names); len(lost) > 0 {
				t.Errorf("%d innocents did not end: %q …", len(lost), lost[:min(5, len(lost))])
			}
			for i, ref := range poison {
				info, err := ref.Info(t.Context())
				if err != nil || info.Reason != "deaths" || info.State != state.Archived {
					t.Errorf("poison %d: %+v, %v", i, info, err)
				}
			}
			redistest.CheckInvariants(t, server.Dial(t), queue, redistest.Invariants{Idle: true})
			t.Logf("%d poisons, %d innocents: %d deaths of the worker", poisons, len(names), deaths)
			if most := 7 * poisons; deaths > most || test.args == nil && deaths > 0 {
				t.Errorf("%d deaths of the worker, expected at most %d, and none where tasks run in processes", deaths,
					most)
			}
		})
	}
}
