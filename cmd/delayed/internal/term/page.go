// Package term writes to terminals: tables that fit their width, colours, progress bars and questions. Texts of tasks
// reach the terminal only through Cell, which escapes all that does not print. It also reads durations and times as
// people write them.
package term

import (
	"strings"
	"time"

	"github.com/godelayed/delayed/inspect"
)

// Style is how a text looks where there are colours.
type Style string

// The styles are the parameters of SGR sequences. They hold on light and on dark backgrounds.
const (
	Plain  Style = ""
	Bold   Style = "1"
	Dim    Style = "2"
	Red    Style = "31"
	Green  Style = "32"
	Yellow Style = "33"
	Blue   Style = "34"
)

// Cell is a text and its style. The text may be anything: it is escaped when it is written.
type Cell struct {
	Text  string
	Style Style
}

// C returns a cell.
func C(text string, style ...Style) Cell {
	c := Cell{Text: text}
	if len(style) > 0 {
		c.Style = style[0]
	}
	return c
}

// Page collects what a command shows, to be written at once.
type Page struct {
	Width int  // columns of the terminal; 0: it is none
	Color bool // whether styles are written
	Now   time.Time

	b strings.Builder
}

// String returns the page.
func (p *Page) String() string { return p.b.String() }

// longest is how many columns a text may have where no terminal bounds it.
const longest = 1000

// Line writes a line of cells, one after the other.
func (p *Page) Line(cells ...Cell) {
	for _, c := range cells {
		p.b.WriteString(p.paint(Clip(c.Text, longest), c.Style))
	}
	p.b.WriteByte('\n')
}

// Space writes an empty line between parts of the page.
func (p *Page) Space() {
	if p.b.Len() > 0 {
		p.b.WriteByte('\n')
	}
}

// indent is how wide the names of fields are.
const indent = 14

// Field writes a line with a name and a value, nothing if the value is empty.
func (p *Page) Field(name string, value Cell) {
	if value.Text != "" {
		p.Line(C(Pad(name+":", indent), Dim), value)
	}
}

// Text is Field for values whose lines are kept apart.
func (p *Page) Text(name string, value Cell) {
	if value.Text == "" {
		return
	}
	first := p.paint(Pad(name+":", indent), Dim)
	for line := range strings.SplitSeq(strings.TrimRight(value.Text, "\n"), "\n") {
		p.b.WriteString(first + p.paint(Clip(strings.ReplaceAll(line, "\t", "    "), longest), value.Style) + "\n")
		first = strings.Repeat(" ", indent)
	}
}

// paint puts a printable text into the colours of a style.
func (p *Page) paint(s string, style Style) string {
	if !p.Color || style == Plain || s == "" {
		return s
	}
	return "\x1b[" + string(style) + "m" + s + "\x1b[0m"
}

// Pad fills up a printable text with spaces.
func Pad(s string, width int) string { return s + strings.Repeat(" ", max(width-Width(s), 0)) }

// Printable is inspect.Printable, for texts that go to the terminal beside a Page.
func Printable(s string) string { return inspect.Printable(s) }
