package top

import (
	"context"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/godelayed/delayed/cmd/delayed/internal/term"
)

// screen is one of the screens. Its methods are called one after the other.
type screen interface {
	// path is what the head of the screen shows: the names of the screens that were opened.
	path() []string
	// fetch returns what reads the screen's data. It runs beside the model, so it must not use the screen, and returns
	// what shows the data. nil: there is nothing to read.
	fetch() func(context.Context) (show func(), err error)
	// gone is called when Redis does not have what the screen shows.
	gone()
	// draw writes the screen, and leaves so many lines free.
	draw(c *canvas, left int)
	// key handles a key. It reports false if it does not know the key.
	key(key string) (cmd tea.Cmd, known bool)
	// keys are those that key knows, the most important first.
	keys() []binding
	// filter returns the filter, and setFilter changes it.
	filter() string
	setFilter(text string) (tea.Cmd, error)
}

// leaver is a screen that must know when it is left.
type leaver interface{ leave() }

// binding is a key, and what it does.
type binding struct {
	key  string // as it is shown
	what string
	hint string // for the last line of the screen; "": only the help has it
	send string // the key that a click on the hint stands for; "": that of key
}

// place is a screen that was opened.
type place struct {
	screen

	at      time.Time // when its data was read, by our clock; zero: not yet
	err     error     // why it could not be read the last time
	failing time.Time // since when
}

// moveKeys are the keys of all lists.
var moveKeys = []binding{
	{key: "↑ ↓ j k", what: "select the line before or behind"},
	{key: "PgUp PgDn", what: "a page up or down"},
	{key: "Home End g G", what: "the first or the last line"},
}

// enterKey opens the selected row of a list.
var enterKey = []binding{{key: "Enter", what: "go into what is selected", hint: "open"}}

// sortKeys are the keys of lists that can be sorted.
var sortKeys = []binding{
	{key: "s", what: "sort by the next column", hint: "sort"},
	{key: "S", what: "sort the other way round"},
}

// everywhere are the keys that the model handles itself.
var everywhere = []binding{
	{key: "/", what: "filter; an empty filter shows everything"},
	{key: "i", what: "find a task by its id, in all queues"},
	{key: "Esc", what: "remove the filter, or go back"},
	{key: "Tab 1-7", what: "the next screen, or that one"},
	{key: "Ctrl-R", what: "refresh now", send: "ctrl+r"},
	{key: "?", what: "this help"},
	{key: "q", what: "quit"},
}

// one returns a name as a list; nil for "".
func one(name string) []string {
	if name == "" {
		return nil
	}
	return []string{name}
}

// tabOfQueue is the path of a tab, or of its screen for one queue.
func tabOfQueue(tab int, queue string) []string { return append(one(queue), theTabs[tab]) }

// lapse is a duration; 0 stands back.
func lapse(d time.Duration, style ...term.Style) term.Cell {
	if d <= 0 {
		return term.C("-", term.Dim)
	}
	if d < time.Millisecond {
		return term.C("<1ms", style...)
	}
	return term.C(term.Duration(d), style...)
}
