package top

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	tea "charm.land/bubbletea/v2"

	"github.com/godelayed/delayed/cmd/delayed/internal/term"
	"github.com/godelayed/delayed/inspect"
	"github.com/godelayed/delayed/inspect/call"
	"github.com/godelayed/delayed/state"
)

// tasksScreen lists the tasks of a queue that are in one state, page by page.
type tasksScreen struct {
	list[taskRow]

	name    string // of the queue
	held    inspect.Queue
	query   inspect.Query
	written string      // the filter, as it was written
	pages   []pageStart // of this page and of those before it; the first page has none
	next    string      // cursor of the next page
	scanned int
	all     bool // actions mean all tasks of the list
}

// pageStart is where a page begins.
type pageStart struct {
	cursor string
	before int // tasks in the pages before
}

// taskRow is a task at its place in a page.
type taskRow struct {
	inspect.Task

	n int
}

const (
	// tasksFrame is how many lines of the terminal a list of tasks does not have.
	tasksFrame = 6
	// mostScan bounds how many tasks are looked at for one page if there is a filter.
	mostScan = 2000
)

func newTasksScreen(m *model, queue string) *tasksScreen {
	s := &tasksScreen{name: queue, query: inspect.Query{State: state.Pending}}
	s.m, s.sort, s.markable = m, -1, true
	s.open = func(t *taskRow) tea.Cmd { return m.open(newTaskScreen(m, &t.Task)) }
	s.empty = "No such tasks."
	s.id = func(t *taskRow) string {
		if t.ID == "" {
			return "#" + strconv.Itoa(t.n)
		}
		return t.ID
	}
	s.columns = []column[taskRow]{
		texts(term.Column{Name: "CALL", Flex: true}, func(t *taskRow) string { return callOf(&t.Task) }, term.Bold),
		texts(term.Column{Name: "WHEN", Drop: 1}, func(t *taskRow) string { return s.when(&t.Task) }, term.Dim),
		amounts(term.Spare("ATTEMPT", 3), func(t *taskRow) int { return t.Attempt }),
		cells(term.Column{Name: "WHY", Flex: true, Optional: true}, func(t *taskRow) term.Cell {
			return term.Why(t.Reason, t.Error)
		}),
		texts(term.Column{Name: "ID", Flex: true, Optional: true, Drop: 5}, func(t *taskRow) string {
			return term.Clip(t.ID, 32)
		}, term.Dim),
	}
	return s
}

// when is since when, or until when, a task is in its state.
func (s *tasksScreen) when(t *inspect.Task) string {
	now := s.m.current().at
	switch t.State {
	case state.Active:
		if !t.Started.IsZero() {
			return "runs for " + term.Duration(max(now.Sub(t.Started), 0))
		}
		return "claimed " + term.Ago(t.Claimed, now)
	case state.Scheduled, state.Retry, state.Aggregating:
		return term.Ago(t.Due, now)
	case state.Pending:
	default:
		if !t.At.IsZero() {
			return term.Ago(t.At, now)
		}
	}
	return term.Ago(t.EnqueuedAt, now)
}

func (s *tasksScreen) path() []string { return []string{theTabs[0], s.name, s.query.State.String()} }

func (s *tasksScreen) filter() string { return s.written }

// onlyFunction filters by a function; "" means any.
func (s *tasksScreen) onlyFunction(path string) {
	if path != "" {
		s.written, s.query.Filter = "func:"+path, inspect.Filter{Function: path}
	}
}

// setFilter shows only the tasks that a filter matches.
func (s *tasksScreen) setFilter(text string) (tea.Cmd, error) {
	f, err := parseFilter(text)
	if err != nil {
		return nil, err
	}
	s.written, s.query.Filter = text, f
	return s.restart(), nil
}

// filterNote explains what can be written as a filter.
func (s *tasksScreen) filterNote() string {
	return "text of the call, or " + strings.Join(filterWords(), ": ") + ":"
}

// restart begins with the first page.
func (s *tasksScreen) restart() tea.Cmd {
	s.pages, s.next, s.scanned = nil, "", 0
	s.marked, s.all = nil, false
	s.set(nil)
	s.read = false
	s.to(0)
	return s.m.refresh()
}

// before is how many tasks are in the pages before.
func (s *tasksScreen) before() int {
	if len(s.pages) == 0 {
		return 0
	}
	return s.pages[len(s.pages)-1].before
}

// limit is how many tasks fit the screen.
func (s *tasksScreen) limit() int { return min(max(s.m.height-tasksFrame, 1), 1000) }

func (s *tasksScreen) fetch() func(context.Context) (func(), error) {
	q := s.query
	q.Limit = s.limit()
	if len(s.pages) > 0 {
		q.Cursor = s.pages[len(s.pages)-1].cursor
	}
	if !q.Filter.IsZero() {
		q.ScanLimit = mostScan
	}
	name := s.name
	return func(ctx context.Context) (func(), error) {
		queue, err := s.m.src.Queue(ctx, name)
		if err != nil {
			return nil, err
		}
		page, err := s.m.src.Tasks(ctx, name, q)
		return func() { s.take(queue, &page) }, err
	}
}

func (s *tasksScreen) take(queue inspect.Queue, page *inspect.Page) {
	s.held, s.next, s.scanned = queue, page.Cursor, page.Scanned
	rows := make([]taskRow, len(page.Tasks))
	for i := range page.Tasks {
		rows[i] = taskRow{page.Tasks[i], i}
	}
	s.set(rows)
	if len(rows) == 0 && s.next == "" && len(s.pages) > 0 { // the last page has become empty
		s.pages = s.pages[:len(s.pages)-1]
	}
}

func (s *tasksScreen) gone() {
	s.held = inspect.Queue{Name: s.name}
	s.set(nil)
}

func (s *tasksScreen) draw(c *canvas, left int) {
	s.drawStates(c)
	s.drawPlace(c)
	s.drawRows(c, left)
}

// drawStates writes how many tasks the queue has in each state: all states if they fit, else those that hold some.
func (s *tasksScreen) drawStates(c *canvas) {
	var words []link
	for _, short := range []bool{false, true} {
		words = []link{{term.C(" "), nil}}
		wide := 1
		for _, in := range inspect.States {
			n := s.held.Size(in)
			if short && n == 0 && in != s.query.State {
				continue
			}
			cell := term.C(" "+in.String()+" "+term.Number(n)+" ", term.StateStyle(in))
			switch {
			case in == s.query.State:
				cell.Style = reverse
			case n == 0:
				cell.Style = term.Dim
			}
			wide += term.Width(cell.Text)
			words = append(words, link{cell, func() tea.Cmd { return s.inState(in) }})
		}
		if wide <= c.width {
			break
		}
	}
	c.links(words...)
}

// drawPlace writes where in the list the page is.
func (s *tasksScreen) drawPlace(c *canvas) {
	n, total := len(s.items), s.held.Size(s.query.State)
	text := " no tasks"
	switch {
	case !s.read:
		text = " reading…"
	case !s.query.Filter.IsZero():
		text = " page " + strconv.Itoa(len(s.pages)+1) + ": " + term.Number(n) + " match among " +
			term.Number(s.scanned) + " of " + term.Number(total)
		if s.next != "" && n < s.limit() {
			text += "; PgDn looks further"
		}
	case n > 0:
		text = " " + term.Number(s.before()+1) + "-" + term.Number(s.before()+n) + " of " +
			term.Number(max(total, s.before()+n))
	}
	order := ", oldest first"
	if s.query.NewestFirst {
		order = ", newest first"
	}
	cells := []term.Cell{term.C(text+order, term.Dim)}
	if !s.held.Paused.IsZero() {
		cells = append(cells, term.C("  paused", term.Yellow))
	}
	switch {
	case s.all:
		cells = append(cells, term.C("  actions mean ALL of them", boldRed))
	case len(s.marked) > 0:
		cells = append(cells, term.C("  "+term.Number(len(s.marked))+" marked", term.Bold))
	}
	c.write(cells...)
}

// inState lists the tasks of another state.
func (s *tasksScreen) inState(in state.Task) tea.Cmd {
	s.query.State = in
	return s.restart()
}

// turn goes to the state before or behind.
func (s *tasksScreen) turn(by int) tea.Cmd {
	i := slices.Index(inspect.States, s.query.State)
	return s.inState(inspect.States[(i+by+len(inspect.States))%len(inspect.States)])
}

// page goes to the next page, or to the one before.
func (s *tasksScreen) page(forward bool) tea.Cmd {
	switch {
	case forward && s.next != "":
		s.pages = append(s.pages, pageStart{s.next, s.before() + len(s.items)})
	case !forward && len(s.pages) > 0:
		s.pages = s.pages[:len(s.pages)-1]
	default:
		return nil
	}
	s.next = ""
	s.to(0)
	return s.m.refresh()
}

// what is what an action is done to.
func (s *tasksScreen) what() (selection, error) {
	sel := selection{queue: s.name, state: s.query.State, held: s.held.Size(s.query.State)}
	switch t := s.current(); {
	case s.all:
		q := s.query
		sel.all = &q
	case len(s.marked) > 0:
		sel.ids = slices.Sorted(maps.Keys(s.marked))
	case t == nil:
		return sel, errors.New("no task is selected")
	default:
		return selectionOf(&t.Task)
	}
	sel.clear = func() { s.marked, s.all = nil, false }
	return sel, nil
}

func (s *tasksScreen) key(key string) (tea.Cmd, bool) {
	switch key {
	case "left", "h":
		return s.turn(-1), true
	case "right", "l":
		return s.turn(1), true
	case "pgdown", "ctrl+f":
		return s.page(true), true
	case "pgup", "ctrl+b":
		if len(s.pages) == 0 {
			s.to(0)
		}
		return s.page(false), true
	case "home", "g":
		if len(s.pages) > 0 {
			return s.restart(), true
		}
	case "down", "j":
		if s.pos == len(s.view)-1 && s.next != "" {
			return s.page(true), true
		}
	case "up", "k":
		if s.pos == 0 && len(s.pages) > 0 {
			return s.page(false), true
		}
	case "space":
		if t := s.current(); t != nil && t.ID == "" {
			s.m.fail("cannot mark it", errNoID)
			return nil, true
		}
	case "*":
		s.all, s.marked = !s.all, nil
		return nil, true
	case "o":
		s.query.NewestFirst = !s.query.NewestFirst
		return s.restart(), true
	case "p":
		s.m.pauseQueue(s.name, s.held.Paused.IsZero())
		return nil, true
	case "esc", "backspace":
		if s.all || len(s.marked) > 0 {
			s.all, s.marked = false, nil
			return nil, true
		}
	}
	if cmd, known := s.list.key(key); known {
		return cmd, true
	}
	return s.m.act(key, s.what)
}

func (s *tasksScreen) keys() []binding {
	return slices.Concat(enterKey, []binding{
		{key: "← →", what: "tasks in another state", hint: "state", send: "right"},
	},
		taskKeys(s.query.State), []binding{
			{key: "Space", what: "mark or unmark a task: actions mean the marked ones", hint: "mark"},
			{key: "*", what: "let actions mean all tasks of the list, those of all its pages", hint: "all"},
			{key: "o", what: "the oldest or the newest ones first", hint: "order"},
			{key: "PgUp PgDn", what: "the page before, or the next one"},
			{key: "p", what: "pause or resume the queue"},
		})
}

// parseFilter reads a filter for tasks: words such as func:Welcome error:"connection refused" older:1h. All that has no
// name is a part of the call as it is shown.
func parseFilter(text string) (f inspect.Filter, err error) {
	var rest []string
	for text = strings.TrimSpace(text); text != ""; text = strings.TrimSpace(text) {
		name, value, named := strings.Cut(text, ":")
		c := wordCondition(name)
		if !named || c == nil {
			word, behind, _ := strings.Cut(text, " ")
			rest, text = append(rest, word), behind
			continue
		}
		if value, text, err = cutValue(value); err == nil {
			err = setWord(&f, c, value)
		}
		if err != nil {
			return inspect.Filter{}, err
		}
	}
	f.Text = strings.Join(rest, " ")
	return f, nil
}

// cutValue cuts off a word, or what stands in quotes.
func cutValue(s string) (value, rest string, err error) {
	if quoted, ok := strings.CutPrefix(s, `"`); ok {
		value, rest, ok = strings.Cut(quoted, `"`)
		if !ok {
			return "", "", fmt.Errorf(`expected a closing quote after "%s`, quoted)
		}
		return value, rest, nil
	}
	value, rest, _ = strings.Cut(s, " ")
	return value, rest, nil
}

func setWord(f *inspect.Filter, c *call.Condition, value string) error {
	if value == "" {
		return fmt.Errorf("%s: expected something behind the colon", c.Word)
	}
	if err := c.Set(f, value); err != nil {
		return fmt.Errorf("%s: %w", c.Word, err)
	}
	return nil
}

// filterWords returns the names of what a filter for tasks can be made of.
func filterWords() (words []string) {
	for i := range call.Conditions {
		if w := call.Conditions[i].Word; w != "" {
			words = append(words, w)
		}
	}
	return words
}

// wordCondition returns the condition that a word is for; nil if there is none.
func wordCondition(name string) *call.Condition {
	for i := range call.Conditions {
		if c := &call.Conditions[i]; c.Word == name && name != "" {
			return c
		}
	}
	return nil
}
