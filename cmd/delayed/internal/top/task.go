package top

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/godelayed/delayed/cmd/delayed/internal/term"
	"github.com/godelayed/delayed/inspect"
	"github.com/godelayed/delayed/inspect/document"
	"github.com/godelayed/delayed/state"
)

// taskScreen is all that is known of one task.
type taskScreen struct {
	m    *model
	task inspect.Task
	lost bool // it is gone
	top  int  // first line that is shown
	rows int  // lines that were shown last
	all  int  // lines that there are
}

func newTaskScreen(m *model, t *inspect.Task) *taskScreen { return &taskScreen{m: m, task: *t} }

func (s *taskScreen) path() []string { return []string{theTabs[0], s.task.Queue, "task " + s.task.ID} }

func (s *taskScreen) filter() string { return "" }

func (s *taskScreen) setFilter(string) (tea.Cmd, error) { return nil, nil }

func (s *taskScreen) fetch() func(context.Context) (func(), error) {
	t := s.task
	return func(ctx context.Context) (show func(), err error) {
		if t.ID != "" { // else it cannot be found again
			t, err = s.m.src.Task(ctx, t.Queue, t.ID)
		}
		return func() { s.task, s.lost = t, false }, err
	}
}

func (s *taskScreen) gone() { s.lost = true }

// taskField is how wide the names of fields are.
const taskField = 14

// lines are all lines of the page.
func (s *taskScreen) lines(width int) (lines [][]term.Cell) {
	t, now := &s.task, s.m.current().at
	if now.IsZero() {
		now = s.m.now()
	}
	field := func(name, text string, style ...term.Style) {
		for i, part := range wrap(text, width-taskField-2) {
			if i > 0 {
				name = ""
			}
			lines = append(lines, []term.Cell{term.C(" "+term.Pad(name, taskField), term.Dim), term.C(part, style...)})
		}
	}
	at := func(name string, when time.Time) { field(name, term.Moment(when, now)) }
	if s.lost {
		lines = append(lines, []term.Cell{
			term.C(" The task is gone: it has ended and nothing was kept of it. This was known last.", term.Yellow),
		})
	}
	field("call", callOf(t), term.Bold)
	shown := t.State.String()
	if t.Reason != "" && string(t.Reason) != shown {
		shown += ": " + string(t.Reason)
	}
	field("state", shown, term.StateStyle(t.State))
	field("problem", t.Problem, term.Red)
	if t.Done != 0 || t.Total != 0 || t.Note != "" {
		field("progress", progressText(t), term.Green)
	}
	attempt := strconv.Itoa(t.Attempt)
	if t.Options.MaxRetry != nil {
		attempt += " of " + strconv.Itoa(*t.Options.MaxRetry+1)
	}
	field("attempt", attempt)
	if t.Deaths > 0 {
		field("deaths", term.Count(t.Deaths, "worker")+" died with it", term.Red)
	}
	at("enqueued", t.EnqueuedAt)
	at(term.DueName(t.State), t.Due)
	at("claimed", t.Claimed)
	at("started", t.Started)
	at("began", t.Began)
	at("first failed", t.FirstFailed)
	since := "since"
	if t.State == state.Active {
		since = "reported" // its progress
	}
	at(since, t.At)
	field("id", t.ID)
	field("queue", t.Queue)
	field("function", t.Function)
	field("worker", t.Worker)
	field("options", strings.Join(term.OptionTexts(document.OptionsOf(&t.Options)), ", "))
	for _, key := range slices.Sorted(maps.Keys(t.Headers)) {
		field("header", key+"="+t.Headers[key])
	}
	field("size", term.Bytes(int64(t.Size)))
	if t.Result != nil {
		field("result", resultText(t.Result), term.Green)
	}
	block := func(name, text string, style term.Style) {
		written := 0
		for line := range strings.SplitSeq(strings.TrimRight(text, "\n"), "\n") {
			if written++; written > mostLines {
				break
			}
			field(name, strings.ReplaceAll(line, "\t", "    "), style)
			name = ""
		}
	}
	if n := len(t.Failures); n == 0 || t.Failures[n-1].Error != t.Error || t.Failures[n-1].Stack != t.Stack {
		block("error", t.Error, term.Red)
		block("stack", t.Stack, term.Plain)
	}
	for _, f := range slices.Backward(t.Failures) {
		// The beginning of a worker's id names it, and the line stays one line.
		field("failed", fmt.Sprintf("attempt %d, %s, on %s", f.Attempt, term.Moment(f.At, now),
			term.Clip(f.Worker, 13)), term.Bold)
		block("", f.Error, term.Red)
		block("", f.Stack, term.Plain)
	}
	return lines
}

// progressText is the last progress that a task has reported, as a bar if the total is known.
func progressText(t *inspect.Task) string {
	text := term.Number(t.Done)
	if t.Total > 0 {
		text = term.Bar(t.Done, t.Total) + " " + text + " of " + term.Number(t.Total)
	}
	if t.Note != "" {
		text += "  " + t.Note
	}
	return text
}

// resultText writes the result of a task.
func resultText(v any) string {
	if text, err := json.Marshal(v); err == nil {
		return string(text)
	}
	return fmt.Sprint(v) // such as a map with keys of several types
}

// mostLines bounds the lines that one field of a page takes.
const mostLines = 100

// wrap cuts a text into printable lines that are no wider than that.
func wrap(text string, width int) (lines []string) {
	width = max(width, 10)
	text = term.Clip(text, width*mostLines)
	for text != "" {
		end, wide := 0, 0
		for i, r := range text {
			w := term.Width(string(r))
			if wide+w > width {
				break
			}
			wide += w
			end = i + len(string(r))
		}
		lines = append(lines, text[:max(end, 1)])
		text = text[max(end, 1):]
	}
	return lines
}

func (s *taskScreen) draw(c *canvas, left int) {
	lines := s.lines(c.width)
	s.rows, s.all = max(c.left()-left, 1), len(lines)
	if s.all > s.rows {
		s.rows-- // for the line that says so
	}
	s.top = max(min(s.top, s.all-s.rows), 0)
	for _, cells := range lines[s.top:min(s.top+s.rows, s.all)] {
		c.write(cells...)
	}
	if s.all > s.rows {
		c.write(term.C(fmt.Sprintf(" lines %d-%d of %d", s.top+1, min(s.top+s.rows, s.all), s.all), term.Dim))
	}
}

func (s *taskScreen) key(key string) (tea.Cmd, bool) {
	switch key {
	case "up", "k":
		s.top--
	case "down", "j":
		s.top++
	case "pgup", "ctrl+b":
		s.top -= s.rows
	case "pgdown", "ctrl+f", "space":
		s.top += s.rows
	case "home", "g":
		s.top = 0
	case "end", "G":
		s.top = s.all
	case "/":
	default:
		return s.m.act(key, func() (selection, error) {
			if s.lost {
				return selection{}, inspect.ErrNotFound
			}
			return selectionOf(&s.task)
		})
	}
	s.top = max(min(s.top, s.all-s.rows), 0)
	return nil, true
}

func (s *taskScreen) keys() []binding {
	return append(taskKeys(s.task.State), binding{key: "↑ ↓ PgUp PgDn", what: "scroll"})
}
