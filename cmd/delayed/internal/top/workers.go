package top

import (
	"context"
	"strconv"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/godelayed/delayed/cmd/delayed/internal/term"
	"github.com/godelayed/delayed/inspect"
	"github.com/godelayed/delayed/state"
)

// workersScreen lists workers.
type workersScreen struct {
	list[inspect.Worker]

	queue string // only those that serve it; "": all
}

func newWorkersScreen(m *model, queue string) *workersScreen {
	type worker = inspect.Worker
	s := &workersScreen{queue: queue}
	s.m, s.where, s.head, s.act, s.actKeys = m, tabOfQueue(1, queue), s.sums, m.orderWorker, workerKeys
	s.open = func(w *worker) tea.Cmd { return m.open(newWorkerScreen(m, w)) }
	s.id = func(w *worker) string { return w.ID }
	s.text = func(w *worker) string {
		return w.ID + " " + w.Host + " " + strconv.Itoa(w.PID) + " " + w.Program + " " + queuesOf(w) + " " +
			w.Condition() + " " + running(w).Text
	}
	s.empty = "No workers: nothing runs tasks."
	s.columns = []column[worker]{
		texts(term.Column{Name: "WORKER", Drop: 9}, func(w *worker) string { return term.Clip(w.ID, 8) }),
		texts(term.Column{Name: "HOST", Flex: true}, func(w *worker) string { return w.Host }, term.Bold),
		{
			term.Num("PID"), func(w *worker) term.Cell { return term.C(strconv.Itoa(w.PID)) },
			smallest(func(w *worker) int { return w.PID }),
		},
		{
			term.Column{Name: "STATE"},
			func(w *worker) term.Cell { return term.Condition(w.Condition()) },
			smallest((*worker).Condition),
		},
		{term.Num("CLAIMS"), claims, largest((*worker).Claims)},
		cells(term.Column{Name: "RUNS NOW", Flex: true}, running),
		{
			term.Num("FOR"), func(w *worker) term.Cell { return lapse(s.longest(w), late(s.longest(w))) },
			largest(s.longest),
		},
		cells(term.Column{Name: "QUEUES", Flex: true, Drop: 5}, func(w *worker) term.Cell {
			return term.C(queuesOf(w))
		}),
		lapses(term.Spare("UP", 7), func(w *worker) time.Duration { return m.since(w.Started) }),
		cells(term.Column{Name: "PROGRAM", Flex: true, Optional: true, Drop: 8}, func(w *worker) term.Cell {
			return term.C(w.Program, term.Dim)
		}),
	}
	s.sort = 1
	return s
}

// since is how long ago something was when the screen's data was read; 0 for the zero time.
func (m *model) since(t time.Time) time.Duration {
	if t.IsZero() {
		return 0
	}
	return max(m.current().at.Sub(t), 0)
}

// longest is how long the task runs that has run for longest.
func (s *workersScreen) longest(w *inspect.Worker) time.Duration {
	if r := w.Longest(); r != nil {
		return s.m.since(r.Started)
	}
	return 0
}

// late is the style of how long something runs.
func late(d time.Duration) term.Style {
	if d >= 10*time.Minute {
		return term.Yellow
	}
	return term.Plain
}

// claims is how many tasks a worker has, and how many it may run at a time.
func claims(w *inspect.Worker) term.Cell { return term.Claims(w.Claims(), w.Concurrency) }

// running names the task that has run for longest.
func running(w *inspect.Worker) term.Cell {
	longest := w.Longest()
	if longest == nil {
		return term.C("-", term.Dim)
	}
	text := inspect.ShortName(longest.Function)
	if more := len(w.Running) - 1 + w.MoreRunning; more > 0 {
		text += " +" + strconv.Itoa(more)
	}
	return term.C(text)
}

func queuesOf(w *inspect.Worker) string {
	if w.Order != "" {
		return w.Order
	}
	names := make([]string, len(w.Queues))
	for i, q := range w.Queues {
		names[i] = q.Name
	}
	return strings.Join(names, ", ")
}

func (s *workersScreen) fetch() func(context.Context) (func(), error) {
	queues := one(s.queue)
	return func(ctx context.Context) (func(), error) { return s.shows(s.m.src.Workers(ctx, queues...)) }
}

func (s *workersScreen) sums() []term.Cell {
	busy, room, dead := 0, 0, 0
	for i := range s.items {
		busy += s.items[i].Claims()
		room += s.items[i].Concurrency
		if !s.items[i].Alive() {
			dead++
		}
	}
	cells := []term.Cell{
		term.C(" " + term.Count(len(s.items), "worker")), term.C("  "), term.Amount(busy, term.Green),
		term.C(term.Plural(busy, " claim")+"  ", term.Dim), term.Amount(room),
		term.C(term.Plural(room, " executor"), term.Dim),
	}
	if dead > 0 {
		cells = append(cells, term.C("  "+term.Number(dead)+" dead: their tasks will be given back", term.Red))
	}
	return cells
}

// workerKeys are the keys of orderWorker.
var workerKeys = []binding{
	{key: "p", what: "pause or resume the worker", hint: "pause"},
	{key: "u", what: "quiet it: it claims no more tasks for good", hint: "quiet"},
	{key: "x", what: "stop it: it finishes what runs and ends", hint: "stop"},
}

// orderWorker handles the keys that give a worker an order.
func (m *model) orderWorker(key string, w *inspect.Worker) bool {
	name := term.Clip(w.Host, 40) + ", process " + strconv.Itoa(w.PID)
	var question, detail, done string
	var o inspect.Order
	switch {
	case key == "p" && w.State == state.Paused:
		question, detail, done, o = "Resume", "It claims tasks again.", "resumed", inspect.OrderResume
	case key == "p":
		question, done, o = "Pause", "paused", inspect.OrderPause
		detail = "It claims no more tasks until it is resumed; what runs goes on."
	case key == "u":
		question, done, o = "Quiet", "quieted", inspect.OrderQuiet
		detail = "It claims no more tasks for good; what runs goes on."
	case key == "x":
		question, done, o = "Stop", "stopping", inspect.OrderStop
		detail = "It finishes what runs and ends. Whether it is started again is up to its supervisor."
	default:
		return false
	}
	m.steer(question+" the worker on "+name+"?", detail, done+" the worker on "+name,
		func(ctx context.Context) error { return m.src.OrderWorker(ctx, w.ID, o) })
	return true
}
