package top

import (
	"cmp"
	"slices"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/godelayed/delayed/cmd/delayed/internal/term"
)

// column is a column of a list of items.
type column[T any] struct {
	term.Column

	cell func(*T) term.Cell
	by   func(a, b *T) int // the first order when the list is sorted by the column; nil: it cannot be
}

// cells is a column that the list cannot be sorted by.
func cells[T any](c term.Column, cell func(*T) term.Cell) column[T] { return column[T]{c, cell, nil} }

// texts is a column of texts, sorted alphabetically.
func texts[T any](c term.Column, of func(*T) string, style ...term.Style) column[T] {
	return column[T]{c, func(t *T) term.Cell { return term.C(of(t), style...) }, smallest(of)}
}

// amounts is a column of numbers, the largest first.
func amounts[T any, N int | int64 | uint64](c term.Column, of func(*T) N, style ...term.Style) column[T] {
	return column[T]{c, func(t *T) term.Cell { return term.Amount(of(t), style...) }, largest(of)}
}

// lapses is a column of durations, the longest first.
func lapses[T any](c term.Column, of func(*T) time.Duration) column[T] {
	return column[T]{c, func(t *T) term.Cell { return lapse(of(t)) }, largest(of)}
}

// list is a list of items: sorted, filtered, with one that is selected. The selection stays with an item when the list
// is refreshed. It has what screens with a list have in common.
type list[T any] struct {
	m       *model
	where   []string // see screen.path
	columns []column[T]
	id      func(*T) string
	text    func(*T) string       // where a filter is searched for
	empty   string                // is shown in place of an empty list
	head    func() []term.Cell    // the line above the list
	open    func(*T) tea.Cmd      // opens an item
	act     func(string, *T) bool // handles further keys that act on the selected item; nil: there are none
	actKeys []binding             // the keys of act and of the screen

	sort     int             // column that it is sorted by; -1: it stays in the order in which it comes
	back     bool            // sorted the other way round
	wanted   string          // the filter
	fault    error           // why items are missing
	marked   map[string]bool // ids
	markable bool

	read     bool // items are known, even if there are none
	items    []T
	view     []int // places in items that the filter means, in their order
	selected string
	pos      int // place in view of what is selected
	top      int // place in view of the first line that is shown
	rows     int // lines that were shown last
}

// set replaces the items.
func (l *list[T]) set(items []T) {
	l.items, l.read = items, true
	l.arrange()
}

// arrange filters and sorts.
func (l *list[T]) arrange() {
	l.view = l.view[:0]
	wanted := strings.ToLower(l.wanted)
	for i := range l.items {
		if wanted == "" || strings.Contains(strings.ToLower(l.text(&l.items[i])), wanted) {
			l.view = append(l.view, i)
		}
	}
	if l.sort >= 0 {
		by := l.columns[l.sort].by
		slices.SortStableFunc(l.view, func(a, b int) int {
			x, y := &l.items[a], &l.items[b]
			c := by(x, y)
			if l.back {
				c = -c
			}
			return cmp.Or(c, cmp.Compare(l.id(x), l.id(y)))
		})
	}
	for place, i := range l.view {
		if l.id(&l.items[i]) == l.selected {
			l.pos = place
			return
		}
	}
	l.to(l.pos) // what was selected is gone: its neighbour
}

// to selects what stands at a place.
func (l *list[T]) to(pos int) {
	l.pos = max(min(pos, len(l.view)-1), 0)
	l.selected = ""
	if t := l.current(); t != nil {
		l.selected = l.id(t)
	}
}

// current returns what is selected, nil if the list is empty.
func (l *list[T]) current() *T {
	if l.pos >= len(l.view) {
		return nil
	}
	return &l.items[l.view[l.pos]]
}

// visible returns what was shown last; nothing if that was nothing yet.
func (l *list[T]) visible() []*T {
	var shown []*T
	for i := l.top; i < min(l.top+l.rows, len(l.view)); i++ {
		shown = append(shown, &l.items[l.view[i]])
	}
	return shown
}

// moveKey handles the keys that move the selection.
func (l *list[T]) moveKey(key string) bool {
	switch key {
	case "up", "k":
		l.to(l.pos - 1)
	case "down", "j":
		l.to(l.pos + 1)
	case "pgup", "ctrl+b":
		l.to(l.pos - max(l.rows-1, 1))
	case "pgdown", "ctrl+f":
		l.to(l.pos + max(l.rows-1, 1))
	case "home", "g":
		l.to(0)
	case "end", "G":
		l.to(len(l.view) - 1)
	case "space":
		if t := l.current(); l.markable && t != nil {
			l.mark(l.id(t))
			l.to(l.pos + 1)
		}
	default:
		return false
	}
	return true
}

// mark marks or unmarks an item. What has no id cannot be marked.
func (l *list[T]) mark(id string) {
	switch {
	case id == "":
	case l.marked[id]:
		delete(l.marked, id)
	default:
		if l.marked == nil {
			l.marked = map[string]bool{}
		}
		l.marked[id] = true
	}
}

// sortKey handles the keys that sort.
func (l *list[T]) sortKey(key string) bool {
	if l.sort < 0 {
		return false
	}
	switch key {
	case "s":
		for next := l.sort + 1; ; next++ {
			if i := next % len(l.columns); l.columns[i].by != nil {
				l.sort, l.back = i, false
				break
			}
		}
	case "S":
		l.back = !l.back
	default:
		return false
	}
	l.arrange()
	return true
}

// sortBy sorts by a column, or the other way round if that is so already.
func (l *list[T]) sortBy(i int) {
	switch {
	case l.sort < 0 || l.columns[i].by == nil:
		return
	case l.sort == i:
		l.back = !l.back
	default:
		l.sort, l.back = i, false
	}
	l.arrange()
}

func (l *list[T]) path() []string { return l.where }

func (l *list[T]) filter() string { return l.wanted }

func (l *list[T]) setFilter(text string) (tea.Cmd, error) {
	l.wanted = text
	l.arrange()
	return nil, nil
}

// shows returns what shows items that were read.
func (l *list[T]) shows(items []T, err error) (func(), error) { return func() { l.set(items) }, err }

// showsSome is shows for items that come together with an error about others.
func (l *list[T]) showsSome(items []T, err error) (func(), error) {
	if err != nil && len(items) == 0 {
		return nil, err
	}
	return func() {
		l.fault = err
		l.set(items)
	}, nil
}

func (l *list[T]) gone() { l.set(nil) }

// key handles the keys that all lists have, and those of act.
func (l *list[T]) key(key string) (tea.Cmd, bool) {
	switch t := l.current(); {
	case l.moveKey(key), l.sortKey(key):
		return nil, true
	case key == "enter":
		return l.enter(), true
	default:
		return nil, l.act != nil && t != nil && l.act(key, t)
	}
}

// enter opens the selected item.
func (l *list[T]) enter() tea.Cmd {
	if t := l.current(); t != nil {
		return l.open(t)
	}
	return nil
}

func (l *list[T]) keys() []binding {
	keys := slices.Concat(enterKey, l.actKeys)
	if l.sort >= 0 {
		keys = append(keys, sortKeys...)
	}
	return keys
}

// draw writes the line above the list and the list.
func (l *list[T]) draw(c *canvas, left int) {
	c.write(l.head()...)
	l.drawRows(c, left)
}

// missing is why items are missing in the list.
func (l *list[T]) missing() term.Cell {
	if l.fault == nil {
		return term.C("")
	}
	return term.C("  not complete: "+errText(l.fault), term.Red)
}

// margin is how many columns precede each row: for the marks of the selected and of marked items.
const margin = 2

// drawRows writes the names of the columns and as many rows as fit above the lines that are to be left. A click selects
// a row, and a second one opens it.
func (l *list[T]) drawRows(c *canvas, left int) {
	columns := make([]term.Column, len(l.columns))
	for i := range l.columns {
		columns[i] = l.columns[i].Column
		if i == l.sort {
			columns[i].Name += c.arrow(l.back)
		}
	}
	t := term.NewTable(columns...)
	for _, i := range l.view {
		cells := make([]term.Cell, len(l.columns))
		for n := range l.columns {
			cells[n] = l.columns[n].cell(&l.items[i])
		}
		t.Row(cells...)
	}
	fitted := t.Fit(c.width - margin)
	x := margin
	for _, i := range fitted.Shown {
		c.click(x, x+fitted.Sizes[i], func() tea.Cmd { l.sortBy(i); return nil })
		x += fitted.Sizes[i] + term.Gap
	}
	c.write(l.line("  ", fitted.Head())...)
	l.rows = max(c.left()-left, 1)
	l.top = min(max(l.top, l.pos-l.rows+1), l.pos, max(len(l.view)-l.rows, 0))
	if len(l.view) == 0 {
		text := l.empty
		switch {
		case !l.read:
			text = "reading…"
		case l.wanted != "":
			text = "Nothing matches the filter. Esc removes it."
		}
		c.write(term.C("  "+text, term.Dim))
	}
	for place := l.top; place < min(l.top+l.rows, len(l.view)); place++ {
		selected := place == l.pos
		lead := " "
		if selected {
			lead = ">"
		}
		if l.marked[l.id(&l.items[l.view[place]])] {
			lead += "*"
		} else {
			lead += " "
		}
		c.click(0, c.width, func() tea.Cmd {
			if l.pos == place {
				return l.enter()
			}
			l.to(place)
			return nil
		})
		c.line(selected, l.line(lead, fitted.Row(place))...)
	}
}

// line puts cells side by side.
func (l *list[T]) line(lead string, cells []term.Cell) []term.Cell {
	line := []term.Cell{term.C(lead, term.Bold)}
	for i, cell := range cells {
		if i > 0 {
			line = append(line, term.C(strings.Repeat(" ", term.Gap)))
		}
		line = append(line, cell)
	}
	return line
}

// arrow follows the name of the column that a list is sorted by.
func (c *canvas) arrow(back bool) string {
	if back {
		return c.pick("↑", " ^")
	}
	return c.pick("↓", " v")
}

// largest returns an order by numbers, the largest first.
func largest[T any, N cmp.Ordered](of func(*T) N) func(a, b *T) int {
	return func(a, b *T) int { return cmp.Compare(of(b), of(a)) }
}

// smallest returns an order by numbers or texts, the smallest first.
func smallest[T any, N cmp.Ordered](of func(*T) N) func(a, b *T) int {
	return func(a, b *T) int { return cmp.Compare(of(a), of(b)) }
}
