package main

import (
	"fmt"
	"strings"
	"time"
)

// story is what the quickstart tells: which worker did which task, as the site saw it.
type story struct {
	start  time.Time
	tasks  []*task
	victim *process  // the worker that was killed
	killed time.Time // when
}

// task is one task. It begins and ends with a visit to the site.
type task struct {
	name, begins, ends string
	runs               []run
	done               bool
}

type run struct {
	worker *process
	began  time.Time
}

func newStory() *story {
	s := &story{start: time.Now()}
	for _, name := range names {
		s.tasks = append(s.tasks,
			&task{name: "fetch " + name, begins: "get /camera/" + name, ends: "put /photos/" + name},
			&task{name: "thumbnail of " + name, begins: "get /photos/" + name, ends: "put /thumbnails/" + name})
	}
	s.tasks = append(s.tasks, &task{name: "report", begins: "get /thumbnails/" + names[0], ends: "put /report"})
	return s
}

// tell notes what a worker did.
func (s *story) tell(worker *process, what string) {
	for _, t := range s.tasks {
		switch what {
		case t.begins:
			if t.runs = append(t.runs, run{worker, time.Now()}); len(t.runs) > 1 {
				s.line(worker, "begins again: "+t.name)
			}
		case t.ends:
			t.done = true
			s.line(worker, "done: "+t.name)
		}
	}
}

// kill ends a worker with SIGKILL, which no program can refuse, delay or notice.
func (s *story) kill(worker *process) error {
	s.victim, s.killed = worker, time.Now()
	s.line(worker, fmt.Sprintf("KILLED in the middle of: fetch %s (kill -9 %d)", slow, worker.cmd.Process.Pid))
	fmt.Println("          its heartbeat expires in a second; then others may have its task")
	return worker.kill()
}

func (s *story) line(worker *process, text string) {
	fmt.Printf("%5.2f s  worker %s  %s\n", time.Since(s.start).Seconds(), worker.name, text)
}

// over reports whether all tasks are done.
func (s *story) over() bool {
	for _, t := range s.tasks {
		if !t.done {
			return false
		}
	}
	return true
}

// summary says what became of the tasks.
func (s *story) summary(report []byte) {
	fmt.Printf("\nAll %d tasks are done, although a worker was killed:\n\n", len(s.tasks))
	for _, t := range s.tasks {
		var workers []string
		for _, r := range t.runs {
			name := "worker " + r.worker.name
			if r.worker == s.victim && r.began.Before(s.killed) && len(t.runs) > 1 {
				name += " (killed)"
			}
			workers = append(workers, name)
		}
		times := "once"
		if len(t.runs) > 1 {
			times = fmt.Sprintf("%d times", len(t.runs))
		}
		fmt.Printf("  %-27s  ran %s: %s\n", t.name, times, strings.Join(workers, ", "))
	}
	fmt.Printf("\nThe report, written by the last task:\n\n%s\n", report)
	fmt.Print(`What you saw: Delay puts a call into Redis; a worker process takes it out and
calls the function. The killed worker's task was not lost with it: when its
heartbeat had expired, the other worker put the task back and ran it again.
Heartbeats live for one second here, and for 15 by default.

To see how, read examples/quickstart/main.go, then worker.go.
`)
}
