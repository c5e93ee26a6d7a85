package top

import (
	"context"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/godelayed/delayed/cmd/delayed/internal/term"
)

// screen is one of the screens. Its methods are called one after the other.
type screen interface {
	// path is what the head of the screen says about where one is: the names of what was gone into.
	path() []string
	// fetch returns what reads the screen's data, beside the model: it must not use the screen. nil: nothing is to be
	// read.
	fetch(src source) func(context.Context) (any, error)
	// take takes over what fetch has read.
	take(data any)
	// draw writes the screen, and leaves so many lines free.
	draw(c *canvas, left int)
	// key answers a key. It reports false if it does not know the key.
	key(key string) (cmd tea.Cmd, known bool)
	// keys are those that key knows, the most important ones first.
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

// place is a screen that was gone into.
type place struct {
	screen

	at      time.Time // when its data was read, by our clock; zero: not yet
	err     error     // why it could not be read the last time
	failing time.Time // since when
}

// moving are the keys of all lists.
var moving = []binding{
	{key: "↑ ↓ j k", what: "select the line before or behind"},
	{key: "PgUp PgDn", what: "a page up or down"},
	{key: "Home End g G", what: "the first or the last line"},
}

// entering is the key of lists whose lines can be gone into.
var entering = []binding{{key: "Enter", what: "go into what is selected", hint: "open"}}

// sorting are the keys of lists that can be sorted.
var sorting = []binding{
	{key: "s", what: "sort by the next column", hint: "sort"},
	{key: "S", what: "sort the other way round"},
}

// everywhere are the keys that the model answers itself.
var everywhere = []binding{
	{key: "/", what: "filter; an empty filter shows everything"},
	{key: "i", what: "find a task by its id, in all queues"},
	{key: "Esc", what: "remove the filter, or go back"},
	{key: "Tab 1-7", what: "the next screen, or that one"},
	{key: "Ctrl-R", what: "refresh now", send: "ctrl+r"},
	{key: "?", what: "this help"},
	{key: "q", what: "quit"},
}

// number is a column of numbers, spare one that is left out where the terminal is narrow, and rare one that is also
// left out when all are 0.
func number(name string) term.Column { return term.Column{Name: name, Right: true} }

func spare(name string, drop int) term.Column {
	return term.Column{Name: name, Right: true, Drop: drop}
}

func rare(name string, drop int) term.Column {
	return term.Column{Name: name, Right: true, Optional: true, Drop: drop}
}

// amount is a number; 0 stands back.
func amount[N int | int64](n N, style ...term.Style) term.Cell {
	if n == 0 {
		return term.C("0", term.Dim)
	}
	return term.C(term.Number(n), style...)
}

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
