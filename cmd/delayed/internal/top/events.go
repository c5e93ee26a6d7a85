package top

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/godelayed/delayed"
	"github.com/godelayed/delayed/cmd/delayed/internal/term"
	"github.com/godelayed/delayed/event"
	"github.com/godelayed/delayed/inspect"
	"github.com/godelayed/delayed/state"
)

// eventsScreen is a log of what happens in workers, while it is shown: workers publish events only then.
type eventsScreen struct {
	list[eventRow]

	queue  string // only its events; "": those of all queues
	stream *stream
	held   bool // nothing is added until one goes on
	missed int  // events that were not shown
	seen   int
	wait   []eventRow // what came while held
	heard  int        // messages of the stream: a calmMsg counts only if none came since
}

// eventRow is an event with its number.
type eventRow struct {
	inspect.Event

	n int
}

// mostEvents bounds the log.
const mostEvents = 2000

func newEventsScreen(m *model, queue string) *eventsScreen {
	s := &eventsScreen{queue: queue}
	s.m, s.where, s.head, s.open = m, tabOfQueue(3, queue), s.progress, s.openTask
	s.actKeys = []binding{
		{key: "Space", what: "hold the log, and go on", hint: "hold"},
		{key: "x", what: "empty the log", hint: "empty"},
	}
	s.id = func(e *eventRow) string { return strconv.Itoa(e.n) }
	s.text = func(e *eventRow) string {
		return e.Kind.String() + " " + e.Queue + " " + e.Function + " " + e.ID + " " + e.Worker + " " + e.Reason + " " +
			e.Error
	}
	s.sort = -1
	s.empty, s.read = "Waiting for something to happen.", true // events are awaited, not read
	s.columns = []column[eventRow]{
		texts(term.Column{Name: "TIME"}, func(e *eventRow) string { return e.At.Format("15:04:05.000") }, term.Dim),
		cells(term.Column{Name: "EVENT"}, func(e *eventRow) term.Cell {
			// Most events are about tasks.
			return term.C(strings.TrimPrefix(e.Kind.String(), "task "), kindStyle(e.Kind))
		}),
		texts(term.Column{Name: "QUEUE", Drop: 4}, func(e *eventRow) string { return e.Queue }),
		texts(term.Column{Name: "FUNCTION", Flex: true}, func(e *eventRow) string {
			return inspect.ShortName(e.Function)
		}, term.Bold),
		amounts(term.Rare("TRY", 3), func(e *eventRow) int { return e.Attempt }),
		cells(term.Num("TOOK"), took),
		cells(term.Column{Name: "WHY", Flex: true, Optional: true}, func(e *eventRow) term.Cell {
			return term.Why(state.Reason(e.Reason), e.Error)
		}),
		texts(term.Column{Name: "ID", Flex: true, Optional: true, Drop: 5}, func(e *eventRow) string {
			return e.ID
		}, term.Dim),
		texts(term.Column{Name: "WORKER", Drop: 8}, func(e *eventRow) string {
			return term.Clip(e.Worker, 8)
		}, term.Dim),
	}
	return s
}

func kindStyle(k event.Kind) term.Style {
	switch k {
	case event.TaskDone:
		return term.Green
	case event.TaskFailed, event.TaskPanicked, event.TaskTimedOut, event.TaskArchived, event.TaskLost, event.TaskStuck,
		event.HeartbeatLost:
		return term.Red
	case event.TaskRetried, event.TaskParked, event.TaskExpired, event.TaskCanceled, event.TaskReleased,
		event.TaskDropped, event.WorkerPaused, event.WorkerQuiet, event.WorkerStopping, event.WorkerStopped,
		event.QueuePaused:
		return term.Yellow
	case event.TaskStarted, event.WorkerIdle:
		return term.Dim
	default:
		return term.Blue
	}
}

func took(e *eventRow) term.Cell {
	switch {
	case e.Took > 0:
		return lapse(e.Took)
	case e.Wait > 0 && e.Kind == event.TaskStarted:
		return term.C("waited "+term.Duration(e.Wait), term.Dim)
	case e.Wait > 0:
		return term.C("in "+term.Duration(e.Wait), term.Dim)
	}
	return term.C("")
}

// fetch reads nothing: events come by themselves.
func (s *eventsScreen) fetch() func(context.Context) (func(), error) { return nil }

// stream collects what Watch yields until the model takes it over.
type stream struct {
	ctx     context.Context
	cancel  func()
	watched chan watched // closed at the end
	dropped atomic.Int64 // events that there was no room for
	last    error        // that Watch has yielded before the end
}

// watched is what Watch yields.
type watched struct {
	inspect.Event

	err error
}

// add adds an event or an error. In a flood it drops the oldest ones: the model takes over ten times a second.
func (s *stream) add(w watched) {
	for {
		select {
		case s.watched <- w:
			return
		default:
		}
		select {
		case old := <-s.watched:
			s.dropped.Add(1 + int64(old.Missed))
		default:
		}
	}
}

// breath is how long events are collected before they are shown, so that floods do not fill the terminal's line.
const breath = 100 * time.Millisecond

// begin begins to watch, if that is not going on.
func (s *eventsScreen) begin() tea.Cmd {
	if s.stream != nil {
		return nil
	}
	ctx, cancel := context.WithCancel(s.m.ctx)
	st := &stream{ctx: ctx, cancel: cancel, watched: make(chan watched, mostEvents)}
	s.stream = st
	queues := one(s.queue)
	watch := s.m.beside(func() tea.Msg {
		defer cancel()
		defer close(st.watched)
		for ctx.Err() == nil && !errors.Is(st.last, delayed.ErrClosed) {
			for e, err := range s.m.src.Watch(ctx, queues...) {
				st.add(watched{e, err})
				st.last = err
			}
			pause(ctx, time.Second) // Redis was away when it began: Watch has not begun at all
		}
		return nil
	})
	return tea.Batch(watch, s.listen(st))
}

// pause waits, or until ctx ends.
func pause(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

// eventsMsg brings events.
type eventsMsg struct {
	to     *eventsScreen
	from   *stream
	events []inspect.Event
	missed int
	err    error
	ended  bool
}

// listen waits for events.
func (s *eventsScreen) listen(st *stream) tea.Cmd {
	return s.m.beside(func() tea.Msg {
		var w watched
		open := true
		select {
		case w, open = <-st.watched:
			pause(st.ctx, breath)
		case <-st.ctx.Done():
			return nil
		}
		msg := eventsMsg{to: s, from: st, missed: int(st.dropped.Swap(0))}
		for ; open; w, open = <-st.watched {
			if msg.err = w.err; w.err == nil {
				msg.events = append(msg.events, w.Event)
				msg.missed += w.Missed
			}
			if len(st.watched) == 0 {
				return msg
			}
		}
		msg.err, msg.ended = st.last, true
		return msg
	})
}

// arrived takes in events.
func (s *eventsScreen) arrived(msg eventsMsg) tea.Cmd {
	if msg.from != s.stream {
		return nil
	}
	p := s.m.current()
	if p.err = msg.err; p.err == nil {
		p.at = s.m.now()
	}
	var calm tea.Cmd
	if s.heard++; p.err != nil {
		calm = s.m.after(calmAfter, calmMsg{s, msg.from, s.heard})
	}
	s.missed += msg.missed
	rows := make([]eventRow, 0, len(msg.events))
	for _, e := range msg.events {
		s.seen++
		rows = append(rows, eventRow{e, s.seen})
	}
	if s.held {
		s.wait = clipped(append(s.wait, rows...))
	} else {
		s.append(rows)
	}
	if msg.ended {
		return calm
	}
	return tea.Batch(calm, s.listen(msg.from))
}

// calmAfter is after how long without an error or an event Redis is taken to answer again: while it does not, Watch
// repeats the error more often than that.
const calmAfter = 10 * time.Second

// calmMsg is due when this time is over for an error.
type calmMsg struct {
	to    *eventsScreen
	from  *stream
	heard int
}

// calmed forgets an error that has not come again.
func (s *eventsScreen) calmed(msg calmMsg) {
	if msg.from == s.stream && msg.heard == s.heard {
		p := s.m.current()
		p.err, p.at = nil, s.m.now()
	}
}

// append adds rows to the log. The selection stays at the end if it is there.
func (s *eventsScreen) append(rows []eventRow) {
	atEnd := s.pos >= len(s.view)-1
	s.set(clipped(append(s.items, rows...)))
	if atEnd {
		s.to(len(s.view) - 1)
	}
}

// clipped leaves out the first rows beyond mostEvents.
func clipped(rows []eventRow) []eventRow {
	return slices.Clone(rows[max(len(rows)-mostEvents, 0):])
}

// leave ends watching.
func (s *eventsScreen) leave() {
	if s.stream != nil {
		s.stream.cancel()
		s.stream = nil
	}
}

func (s *eventsScreen) progress() []term.Cell {
	cells := []term.Cell{term.C(" "+term.Count(s.seen, "event"), term.Plain)}
	if s.missed > 0 {
		cells = append(cells, term.C("  "+term.Number(s.missed)+" more came too fast", term.Yellow))
	}
	switch {
	case s.held:
		return append(cells, term.C("  held: "+term.Number(len(s.wait))+" wait; Space goes on", term.Yellow))
	case s.pos < len(s.view)-1:
		return append(cells, term.C("  End follows", term.Dim))
	default:
		return append(cells, term.C("  following", term.Dim))
	}
}

// openTask opens the task of an event.
func (s *eventsScreen) openTask(e *eventRow) tea.Cmd {
	if e.ID == "" {
		return nil
	}
	t := inspect.Task{Queue: e.Queue, ID: e.ID, State: state.Unknown, Attempt: e.Attempt, Worker: e.Worker}
	t.Function, t.Call = e.Function, inspect.ShortName(e.Function)+"(…)"
	t.Error = e.Error
	return s.m.open(newTaskScreen(s.m, &t))
}

func (s *eventsScreen) key(key string) (tea.Cmd, bool) {
	switch key {
	case "space":
		if s.held = !s.held; !s.held {
			s.append(s.wait)
			s.wait = nil
		}
	case "x":
		s.set(nil)
	default:
		return s.list.key(key)
	}
	return nil, true
}
