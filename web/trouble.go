package web

import (
	"cmp"
	"fmt"
	"html/template"
	"slices"
	"strings"
	"time"

	"github.com/godelayed/delayed/inspect"
	"github.com/godelayed/delayed/state"
)

// trouble is something that somebody should look at.
type trouble struct {
	Bad    bool   // else it is a warning
	Queue  string // "" if it is not about one
	Text   string // a sentence without its full stop, behind the name of the queue
	Action string // what the link says
	Href   template.URL

	rank int // the higher, the worse
}

// signs are what troubles are found by.
type signs struct {
	queues  []inspect.Queue
	workers []inspect.Worker
	failing []failing
	late    []lateEntry
	samples []sample
}

// failing is what has become of the runs of a function lately.
type failing struct {
	Queue, Function string
	Runs, Failed    uint64
}

// lateEntry is a periodic entry that should have ticked.
type lateEntry struct {
	Queue, Name string
	Late        time.Duration
}

// sample is what was found among some tasks of a queue.
type sample struct {
	Queue      string
	Parked     int            // tasks that are
	Why        map[string]int // of those that were looked at, by function and reason
	Unreadable int            // of the pending tasks that were looked at
}

const (
	longWait    = 30 * time.Second // is worth a word
	tooLongWait = 5 * time.Minute
	longPause   = time.Hour   // of a queue without tasks
	lateTick    = time.Minute // an entry that is late has no scheduler
	lately      = 15 * time.Minute
	// archiveBound is the default of WorkerConfig.ArchiveMax; the workers' own is not known.
	archiveBound = 10_000
	// deployTime is how long two versions of workers are nothing special.
	deployTime = 15 * time.Minute
)

// troubles returns what is wrong, the worst first.
func troubles(s *signs) (all []trouble) {
	for i := range s.queues {
		all = append(all, queueTroubles(&s.queues[i], s.workers)...)
	}
	all = append(all, workerTroubles(s)...)
	for _, f := range s.failing {
		all = append(all, f.troubles()...)
	}
	for _, e := range s.late {
		all = append(all, trouble{
			rank: 70, Bad: true, Queue: e.Queue,
			Text: "its periodic entry " + inspect.Printable(e.Name) + " should have ticked " + duration(e.Late) +
				" ago: no scheduler runs it",
			Action: "Show it", Href: link("entry", "queue", e.Queue, "name", e.Name),
		})
	}
	for i := range s.samples {
		all = append(all, s.samples[i].troubles()...)
	}
	slices.SortStableFunc(all, func(a, b trouble) int {
		return cmp.Or(cmp.Compare(b.rank, a.rank), cmp.Compare(a.Queue, b.Queue))
	})
	return all
}

// queueTroubles returns what is wrong with one queue.
func queueTroubles(q *inspect.Queue, workers []inspect.Worker) (all []trouble) {
	add := func(rank int, bad bool, text, action string, href template.URL) {
		all = append(all, trouble{Bad: bad, Queue: q.Name, Text: text, Action: action, Href: href, rank: rank})
	}
	own := link("queue", "name", q.Name)
	if q.Err != nil {
		add(100, true, "another program uses one of its keys: "+inspect.Printable(q.Err.Error())+
			"; rename or delete that key, or use another prefix", "Show it", own)
		return all
	}
	list := func(s state.Task) template.URL { return link("tasks", "queue", q.Name, "state", s) }
	paused := !q.Paused.IsZero()
	waiting := q.Pending + q.Scheduled + q.Retry + q.Aggregating
	switch {
	case q.Workers == 0 && !q.Legacy && waiting > 0:
		add(95, true, plural(waiting, "task waits", "tasks wait")+", and no worker serves it", "Workers", "workers")
	case paused && q.Pending > 0:
		add(60, false, "paused for "+duration(q.At.Sub(q.Paused))+", and "+
			plural(q.Pending, "task waits", "tasks wait"), "Resume it", own)
	case paused && q.At.Sub(q.Paused) > longPause:
		add(30, false, "paused for "+duration(q.At.Sub(q.Paused)), "Resume it", own)
	case q.Latency >= longWait:
		bad := q.Latency >= tooLongWait
		rank := 58
		if bad {
			rank = 80
		}
		add(rank, bad, "the oldest of "+plural(q.Pending, "pending task", "pending tasks")+" has waited "+
			duration(q.Latency)+whyWaiting(q.Name, workers), "Show them", list(state.Pending))
	}
	if q.Suspects > 0 {
		add(55, false, plural(q.Suspects, "pending task has", "pending tasks have")+
			" died with a worker in the last 72 h: look whether workers are killed, or run out of memory",
			"Deaths", link("deaths", "queue", q.Name))
	}
	if q.Archived >= archiveBound*9/10 {
		add(45, false, plural(q.Archived, "archived task", "archived tasks")+
			": unless they are configured otherwise, workers delete the oldest beyond "+number(archiveBound),
			"Show them", list(state.Archived))
	}
	if q.Today.Lost > 0 {
		add(40, false, plural(int(q.Today.Lost), "task has", "tasks have")+
			" run twice today, in part at least, because workers had lost their claims: look whether they stand "+
			"still, or Redis is far away", "Show the days", own)
	}
	return all
}

// whyWaiting says why tasks of a queue wait although workers serve it.
func whyWaiting(queue string, workers []inspect.Worker) string {
	executors, claims, running, idle := 0, 0, 0, 0
	functions := map[string]int{}
	for i := range workers {
		w := &workers[i]
		if !serves(w, queue) {
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
		return ", and all its workers are paused, or stop"
	case executors == 0 || claims < executors:
		return ""
	}
	text := ", and " + plural(executors, "executor is busy", "executors are busy")
	if executors > 1 {
		text = ", and all " + number(executors) + " executors are busy"
	}
	most, n := "", 0
	for f, count := range functions {
		if count > n || count == n && f < most {
			most, n = f, count
		}
	}
	switch {
	case n == 0:
	case n >= executors:
		text += " with " + inspect.Printable(inspect.ShortName(most))
	default:
		text += ", " + number(n) + " of them for more than a second with " + inspect.Printable(inspect.ShortName(most))
	}
	return text
}

// serves reports whether a worker is alive on a queue.
func serves(w *inspect.Worker, queue string) bool {
	return slices.ContainsFunc(w.Queues, func(q inspect.WorkerQueue) bool { return q.Name == queue && q.Alive > 0 })
}

// workerTroubles returns what is wrong with workers.
func workerTroubles(s *signs) (all []trouble) {
	alive := map[string]int{}
	now := time.Time{}
	for i := range s.queues {
		alive[s.queues[i].Name] = s.queues[i].Workers
		if s.queues[i].At.After(now) {
			now = s.queues[i].At
		}
	}
	for i := range s.workers {
		w := &s.workers[i]
		for _, q := range w.Queues {
			if q.Alive > 0 || q.Claims == 0 {
				continue
			}
			t := trouble{
				rank: 50, Queue: q.Name, Text: "a worker has died and left " + plural(q.Claims, "task", "tasks") +
					": the others will take over within seconds",
				Action: "Show it", Href: link("worker", "id", w.ID),
			}
			if alive[q.Name] == 0 {
				t.rank, t.Bad = 90, true
				t.Text = "a worker has died and left " + plural(q.Claims, "task", "tasks") +
					", and no other is there to take over"
			}
			all = append(all, t)
		}
	}
	return append(all, versions(s.workers, now)...)
}

// crew are the workers of one language on a queue: those of Go and of Python may differ.
type crew struct {
	queue  string
	python bool
}

// versions finds queues that workers of several versions have served for longer than a deploy takes.
func versions(workers []inspect.Worker, now time.Time) (all []trouble) {
	found := map[crew]map[string]bool{}
	youngest := map[crew]time.Time{}
	for i := range workers {
		w := &workers[i]
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
			if q.Alive == 0 {
				continue
			}
			c := crew{q.Name, python}
			if found[c] == nil {
				found[c] = map[string]bool{}
			}
			found[c][name] = true
			if w.Started.After(youngest[c]) {
				youngest[c] = w.Started
			}
		}
	}
	same := map[string][]string{} // queues by versions
	for c, names := range found {
		if len(names) > 1 && now.Sub(youngest[c]) > deployTime {
			list := make([]string, 0, len(names))
			for name := range names {
				list = append(list, inspect.Printable(name))
			}
			slices.Sort(list)
			text := plural(len(list), "version", "versions") + " of workers serve it: " + strings.Join(list, " and ")
			same[text] = append(same[text], c.queue)
		}
	}
	for text, queues := range same {
		slices.Sort(queues)
		if n := len(queues) - 1; n > 0 {
			text += "; likewise " + plural(n, "other queue", "other queues")
		}
		all = append(all, trouble{
			rank: 35, Queue: queues[0], Text: text, Action: "Workers", Href: link("workers", "queue", queues[0]),
		})
	}
	slices.SortFunc(all, func(a, b trouble) int { return cmp.Compare(a.Queue, b.Queue) })
	return all
}

// troubles says that a function fails, if it fails often.
func (f *failing) troubles() []trouble {
	t := trouble{
		rank: 57, Queue: f.Queue, Action: "Show it",
		Href: link("function", "queue", f.Queue, "path", f.Function),
	}
	switch {
	case f.Failed >= 5 && f.Failed*2 >= f.Runs:
		t.rank, t.Bad = 75, true
	case f.Failed >= 10 && f.Failed*10 >= f.Runs:
	default:
		return nil
	}
	name := inspect.ShortName(inspect.Printable(f.Function))
	if f.Function == "" {
		name, t.Href = "other functions", link("functions", "queue", f.Queue)
	}
	t.Text = fmt.Sprintf("%s of %s runs of %s failed in the last 15 min (%s)", number(f.Failed), number(f.Runs), name,
		percent(f.Failed, f.Runs))
	return []trouble{t}
}

// troubles says what a sample of tasks tells.
func (s *sample) troubles() (all []trouble) {
	seen, most := 0, ""
	for why, n := range s.Why {
		seen += n
		if most == "" || n > s.Why[most] || n == s.Why[most] && why < most {
			most = why
		}
	}
	if seen > 0 {
		text := plural(s.Parked, "task is", "tasks are") + " parked because no worker can run " + those(s.Parked) + ": "
		if s.Why[most] < seen {
			text += "for example of "
		}
		all = append(all, trouble{
			rank: 85, Bad: true, Queue: s.Queue, Text: text + most, Action: "Show them",
			Href: link("parked", "queue", s.Queue),
		})
	}
	if s.Unreadable > 0 {
		all = append(all, trouble{
			rank: 52, Queue: s.Queue, Text: plural(s.Unreadable, "task", "tasks") +
				" at the head of the queue cannot be read; workers archive " + those(s.Unreadable),
			Action: "Show them", Href: link("tasks", "queue", s.Queue, "state", state.Pending),
		})
	}
	return all
}

func those(n int) string {
	if n == 1 {
		return "it"
	}
	return "them"
}

// plural writes a number with one of two words.
func plural(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return number(n) + " " + many
}
