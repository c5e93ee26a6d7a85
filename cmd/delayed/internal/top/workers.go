package top

import (
	"context"
	"slices"
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

	m     *model
	queue string // only those that serve it; "": all
}

func newWorkersScreen(m *model, queue string) *workersScreen {
	type worker = inspect.Worker
	s := &workersScreen{m: m, queue: queue}
	s.id = func(w *worker) string { return w.ID }
	s.text = func(w *worker) string {
		return w.ID + " " + w.Host + " " + strconv.Itoa(w.PID) + " " + w.Program + " " + queuesOf(w) + " " +
			workerState(w).Text + " " + running(w).Text
	}
	s.empty = "No workers: nothing runs tasks."
	s.columns = []column[worker]{
		{
			term.Column{Name: "WORKER", Drop: 9},
			func(w *worker) term.Cell { return term.C(term.Clip(w.ID, 8)) },
			smallest(s.id),
		},
		{
			term.Column{Name: "HOST", Flex: true},
			func(w *worker) term.Cell { return term.C(w.Host, term.Bold) },
			smallest(func(w *worker) string { return w.Host }),
		},
		{
			number("PID"), func(w *worker) term.Cell { return term.C(strconv.Itoa(w.PID)) },
			smallest(func(w *worker) int { return w.PID }),
		},
		{term.Column{Name: "STATE"}, workerState, smallest(func(w *worker) string { return workerState(w).Text })},
		{number("CLAIMS"), claims, largest((*worker).Claims)},
		{term.Column{Name: "RUNS NOW", Flex: true}, running, nil},
		{
			number("FOR"), func(w *worker) term.Cell { return lapse(s.longest(w), late(s.longest(w))) },
			largest(s.longest),
		},
		{
			term.Column{Name: "QUEUES", Flex: true, Drop: 5},
			func(w *worker) term.Cell { return term.C(queuesOf(w)) },
			nil,
		},
		{
			spare("UP", 7), func(w *worker) term.Cell { return lapse(s.since(w.Started)) },
			largest(func(w *worker) time.Duration { return s.since(w.Started) }),
		},
		{
			term.Column{Name: "PROGRAM", Flex: true, Optional: true, Drop: 8},
			func(w *worker) term.Cell { return term.C(w.Program, term.Dim) }, nil,
		},
	}
	s.sort = 1
	return s
}

// since is how long ago something was when the workers were read.
func (s *workersScreen) since(t time.Time) time.Duration {
	if t.IsZero() {
		return 0
	}
	return max(s.m.current().at.Sub(t), 0)
}

// longest is how long the task runs that has run for longest.
func (s *workersScreen) longest(w *inspect.Worker) time.Duration {
	if r := w.Longest(); r != nil {
		return s.since(r.Started)
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

// workerState is what a worker does.
func workerState(w *inspect.Worker) term.Cell { return term.Condition(w.Condition()) }

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

func (s *workersScreen) path() []string {
	if s.queue != "" {
		return []string{s.queue, theTabs[1]}
	}
	return []string{theTabs[1]}
}

func (s *workersScreen) filter() string { return s.list.filter }

func (s *workersScreen) setFilter(text string) (tea.Cmd, error) {
	s.list.filter = text
	s.arrange()
	return nil, nil
}

func (s *workersScreen) fetch(src source) func(context.Context) (any, error) {
	var queues []string
	if s.queue != "" {
		queues = []string{s.queue}
	}
	return func(ctx context.Context) (any, error) { return src.Workers(ctx, queues...) }
}

func (s *workersScreen) take(data any) {
	workers, _ := data.([]inspect.Worker)
	s.set(workers)
}

func (s *workersScreen) draw(c *canvas, left int) {
	busy, room, dead := 0, 0, 0
	for i := range s.items {
		busy += s.items[i].Claims()
		room += s.items[i].Concurrency
		if !s.items[i].Alive() {
			dead++
		}
	}
	cells := []term.Cell{
		term.C(" " + count(len(s.items), "worker")), term.C("  "), amount(busy, term.Green),
		term.C(plural(busy, " claim")+"  ", term.Dim), amount(room), term.C(plural(room, " executor"), term.Dim),
	}
	if dead > 0 {
		cells = append(cells, term.C("  "+term.Number(dead)+" dead: their tasks will be given back", term.Red))
	}
	c.say(cells...)
	s.list.draw(c, left, s.enter)
}

func (s *workersScreen) enter() tea.Cmd {
	if w := s.current(); w != nil {
		return s.m.open(newWorkerScreen(s.m, w))
	}
	return nil
}

func (s *workersScreen) key(key string) (tea.Cmd, bool) {
	if s.moveKey(key) || s.sortKey(key) {
		return nil, true
	}
	if w := s.current(); w != nil {
		if key == "enter" {
			return s.enter(), true
		}
		return nil, s.m.orderWorker(key, w)
	}
	return nil, false
}

// orderWorker answers the keys that tell a worker something.
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

// workerKeys are the keys of orderWorker.
func workerKeys() []binding {
	return []binding{
		{key: "p", what: "pause or resume the worker", hint: "pause"},
		{key: "u", what: "quiet it: it claims no more tasks for good", hint: "quiet"},
		{key: "x", what: "stop it: it finishes what runs and ends", hint: "stop"},
	}
}

func (s *workersScreen) keys() []binding { return slices.Concat(entering, workerKeys(), sorting) }
