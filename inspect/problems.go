package inspect

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/godelayed/delayed/state"
)

// add adds a problem, a warning if nothing else is said.
func (d *diagnosing) add(p Problem) {
	p.Severity = cmp.Or(p.Severity, SeverityWarning)
	d.Problems = append(d.Problems, p)
}

// wrongType reports that a queue cannot be described.
func (d *diagnosing) wrongType(q *Queue) {
	text, _, _ := strings.Cut(strings.TrimPrefix(q.Err.Error(), "delayed: "), "; ") // Advice has the rest
	d.add(Problem{
		Kind: ProblemWrongType, Severity: SeverityError, Queue: q.Name,
		Text:   "it cannot be read: " + Printable(text),
		Advice: "rename or delete that key, or use another prefix",
	})
}

// Unserved returns how many tasks wait for a worker although none of the queue is alive; 0 if one is. Of legacy workers
// that is not known: it returns 0.
func (q *Queue) Unserved() int {
	if q.Workers > 0 || q.Legacy {
		return 0
	}
	return q.Pending + q.Scheduled + q.Retry + q.Aggregating
}

// queue finds what follows from the sizes of a queue.
func (d *diagnosing) queue(q *Queue) {
	add := func(p Problem) {
		p.Queue = q.Name
		d.add(p)
	}
	oldest := time.Time{}
	if q.Latency > 0 {
		oldest = q.At.Add(-q.Latency)
	}
	if n := q.Unserved(); n > 0 {
		add(Problem{
			Kind: ProblemNoWorkers, Severity: SeverityError, Since: oldest,
			Text:   plural(n, "task waits", "tasks wait") + ", and no worker serves it",
			Advice: "start a worker with this queue, and the same URL and prefix", Command: commandOf("workers", "ls"),
		})
	}
	paused := Problem{
		Kind: ProblemPaused, Text: "paused", Since: q.Paused, Advice: "resume it", Command: commandOf("resume", q.Name),
	}
	switch {
	case !q.Paused.IsZero() && q.Pending > 0:
		paused.Text += ", and " + plural(q.Pending, "task waits", "tasks wait")
		add(paused)
	case !q.Paused.IsZero() && q.At.Sub(q.Paused) > longPause:
		add(paused)
	case q.Paused.IsZero() && q.Unserved() == 0 && q.Latency >= longWait:
		d.slow(q, oldest)
	}
	if q.Suspects > 0 {
		add(Problem{
			Kind: ProblemSuspects, Text: plural(q.Suspects, "pending task has", "pending tasks have") +
				" died with a worker in the last 72 h",
			Advice:  "look whether workers are killed, or run out of memory; docs/RELIABILITY.md",
			Command: commandOf("tasks", "ls", q.Name, "-s", "pending"),
		})
	}
	if q.Archived >= archiveBound*9/10 {
		add(Problem{
			Kind: ProblemArchive, Text: plural(q.Archived, "archived task", "archived tasks") +
				": unless they are configured otherwise, workers delete the oldest beyond " + number(archiveBound),
			Advice:  "look why they have failed, then run or delete them",
			Command: commandOf("tasks", "ls", q.Name, "-s", "archived"),
		})
	}
	if q.Today.Lost > 0 {
		add(Problem{
			Kind: ProblemLost, Text: plural(int(q.Today.Lost), "task has", "tasks have") +
				" run twice today, in part at least, because workers had lost their claims",
			Advice:  "look whether workers stand still, or Redis is far away",
			Command: commandOf("history", q.Name),
		})
	}
}

// Serves reports whether the worker is alive on a queue.
func (w *Worker) Serves(queue string) bool {
	return slices.ContainsFunc(w.Queues, func(q WorkerQueue) bool { return q.Name == queue && q.Alive > 0 })
}

// slow reports that tasks of a queue wait although workers serve it, and why.
func (d *diagnosing) slow(q *Queue, oldest time.Time) {
	p := Problem{
		Kind: ProblemWaiting, Queue: q.Name, Since: oldest, Text: "the oldest of " + plural(q.Pending, "pending task",
			"pending tasks") + " has waited for more than 30 s",
		Advice: "look what its workers do", Command: commandOf("workers", "ls", "-q", q.Name),
	}
	if q.Latency >= tooLongWait {
		p.Severity, p.Text = SeverityError, strings.Replace(p.Text, "30 s", "5 min", 1)
	}
	executors, claims, running, idle := 0, 0, 0, 0
	functions := map[string]int{}
	for i := range d.workers {
		w := &d.workers[i]
		if !w.Serves(q.Name) {
			continue
		}
		if w.State != state.Running && w.State != state.New {
			idle++
			continue
		}
		running++
		executors += w.Concurrency
		claims += min(w.Claims(), w.Concurrency)
		for _, r := range w.Running {
			functions[r.Function]++
		}
	}
	switch {
	case running == 0 && idle > 0:
		p.Text += ", and all its workers are paused, or stop"
		p.Advice = "resume those that are paused, or start others"
	case executors > 0 && claims >= executors:
		p.Text += ", and " + choose(executors, "1 executor is busy", "all "+number(executors)+" executors are busy")
		p.Advice = "start more workers, or give slow functions a queue of their own"
		most := mostOf(functions)
		if len(most) == 0 {
			break
		}
		p.Function = most[0]
		if n := functions[p.Function]; n < executors {
			p.Text += ", " + number(n) + " of them for more than a second"
		}
		p.Text += " with " + Printable(ShortName(p.Function))
	}
	d.add(p)
}

// deadWorkers finds workers that have died with tasks.
func (d *diagnosing) deadWorkers() {
	served := map[string]bool{}
	for i := range d.queues {
		served[d.queues[i].Name] = d.queues[i].Workers > 0
	}
	for i := range d.workers {
		w := &d.workers[i]
		for _, q := range w.Queues {
			if q.Alive > 0 || q.Claims == 0 {
				continue
			}
			p := Problem{
				Kind: ProblemDeadWorker, Queue: q.Name, Worker: w.ID, Text: "a worker has died and left " +
					plural(q.Claims, "task", "tasks") + ", which the others take over",
				Advice: "nothing: that takes seconds", Command: commandOf("workers", "show", w.ID),
			}
			if !served[q.Name] {
				p.Severity = SeverityError
				p.Text = strings.Replace(p.Text, "which the others take over", "and no other is there to take over", 1)
				p.Advice = "start a worker of the queue, or a delayed.Sweeper"
			}
			d.add(p)
		}
	}
}

// oneLanguage are the workers of one language on a queue: those of Go and of Python may differ.
type oneLanguage struct {
	queue  string
	python bool
}

// versions finds queues that workers of several versions have served for longer than a deploy takes. Queues with the
// same versions are one problem.
func (d *diagnosing) versions() {
	found, youngest := map[oneLanguage]map[string]int{}, map[oneLanguage]time.Time{}
	for i := range d.workers {
		w := &d.workers[i]
		if w.Started.IsZero() {
			continue // it has not said yet what it is
		}
		name, python := "delayed "+w.Version, strings.HasPrefix(w.Version, "godelayed")
		if python {
			name = w.Version
		}
		if w.Program != "" {
			name = w.Program + " with " + name
		}
		for _, q := range w.Queues {
			c := oneLanguage{q.Name, python}
			if q.Alive == 0 {
				continue
			}
			if found[c] == nil {
				found[c] = map[string]int{}
			}
			found[c][Printable(name)]++
			if w.Started.After(youngest[c]) {
				youngest[c] = w.Started
			}
		}
	}
	same := map[string]*Problem{}
	for c, names := range found {
		if len(names) < 2 || d.At.Sub(youngest[c]) <= deployTime {
			continue
		}
		text := plural(len(names), "version", "versions") + " of workers serve it: " +
			strings.Join(sortedKeys(names), " and ")
		p := same[text]
		if p == nil {
			p = &Problem{
				Kind: ProblemVersions, Queue: c.queue, Text: text, Others: -1,
				Advice: "end the deploy, or roll it back",
			}
			same[text] = p
		}
		p.Others++
		if youngest[c].After(p.Since) {
			p.Since = youngest[c]
		}
		p.Queue = min(p.Queue, c.queue)
		p.Command = commandOf("workers", "ls", "-q", p.Queue)
	}
	for _, text := range sortedKeys(same) {
		d.add(*same[text])
	}
}

// failed are the runs of a function.
type failed struct {
	queue, function string
	runs, failed    uint64
	since           time.Time
}

// often reports that a function fails, if it fails often.
func (d *diagnosing) often(f *failed) {
	p := Problem{
		Kind: ProblemFailing, Queue: f.queue, Function: f.function, Since: f.since, Advice: "look at its errors",
		Command: commandOf("tasks", "ls", f.queue, "-s", "retry", "--func", f.function),
	}
	switch {
	case f.failed >= manyFailed && f.failed*2 >= f.runs:
		p.Severity = SeverityError
	case f.failed >= 2*manyFailed && f.failed*10 >= f.runs:
	default:
		return
	}
	name := ShortName(Printable(f.function))
	if f.function == "" {
		name, p.Command = "other functions", commandOf("functions", f.queue)
	}
	p.Text = number(f.failed) + " of " + number(f.runs) + " runs of " + name +
		" failed in the last 15 min (" + number(f.failed*100/f.runs) + " %)"
	d.add(p)
}

// explainParked adds why some of the tasks are parked.
func (p *Problem) explainParked(tasks []Task) {
	first, why := map[string]*Task{}, map[string]int{}
	for i := range tasks {
		t := &tasks[i]
		text := ShortName(t.Function) + " (" + string(t.Reason) + ")"
		if t.Error != "" {
			text = ShortName(t.Function) + " (" + string(t.Reason) + ": " + t.Error + ")"
		}
		if first[text] == nil {
			first[text] = t
		}
		why[text]++
		if !t.At.IsZero() && (p.Since.IsZero() || t.At.Before(p.Since)) {
			p.Since = t.At
		}
	}
	most := mostOf(why)
	if len(most) == 0 {
		return
	}
	t := first[most[0]]
	if p.Function = t.Function; t.Python {
		p.Advice = "start a Python worker that has the function; after seven days they are archived"
	}
	shown := most[:min(len(most), shownFunctions)]
	p.Text += ": " + Printable(strings.Join(shown, ", "))
	if len(shown) < len(most) {
		p.Text += " and others"
	}
}

// unreadable reports that so many tasks of a sample cannot be read.
func (d *diagnosing) unreadable(q *Queue, n int) {
	if n > 0 {
		d.add(Problem{
			Kind: ProblemUnreadable, Queue: q.Name, Text: plural(n, "task", "tasks") + " cannot be read",
			Advice:  "look why; workers archive " + choose(n, "it", "them"),
			Command: commandOf("tasks", "ls", q.Name),
		})
	}
}

// unknown reports how many tasks of a sample have functions that no worker knows, by their paths.
func (d *diagnosing) unknown(q *Queue, paths map[string]int) {
	most := mostOf(paths)
	for _, path := range most[:min(len(most), shownFunctions)] {
		d.add(Problem{
			Kind: ProblemUnknownFunction, Severity: SeverityError, Queue: q.Name, Function: path,
			Text:    plural(paths[path], "task", "tasks") + " of " + Printable(path) + ", which no living worker knows",
			Advice:  "deploy a worker that registers it, or give it the old path by Alias",
			Command: commandOf("functions", q.Name),
		})
	}
}

// mostOf returns the keys with the largest numbers first.
func mostOf(counts map[string]int) []string {
	return slices.SortedFunc(maps.Keys(counts), func(a, b string) int {
		return cmp.Or(cmp.Compare(counts[b], counts[a]), cmp.Compare(a, b))
	})
}

// choose returns the first text for 1, else the second.
func choose(n int, one, many string) string {
	if n == 1 {
		return one
	}
	return many
}

// plural writes a number with one of two words.
func plural(n int, one, many string) string { return number(n) + " " + choose(n, one, many) }

// number writes a number with commas between thousands.
func number[N int | uint64](n N) string {
	s := fmt.Sprint(n)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}
