package top

import (
	"slices"
	"strings"

	tea "charm.land/bubbletea/v2"

	"github.com/godelayed/delayed/cmd/delayed/internal/term"
)

// Styles beside those of package term.
const (
	reverse   term.Style = "7"
	boldBlue  term.Style = "1;34"
	boldRed   term.Style = "1;31"
	boldGreen term.Style = "1;32"
)

// look is how things are painted.
type look struct {
	color   bool // else only bold, dim and reversed texts
	unicode bool // else ASCII only
}

// paint puts a printable text into a style. What is selected has that of the selection alone.
func (l *look) paint(text string, style term.Style, selected bool) string {
	if selected {
		style = reverse
	}
	var kept []string
	for p := range strings.SplitSeq(string(style), ";") {
		if p != "" && (l.color || slices.Contains([]string{"1", "2", "7"}, p)) {
			kept = append(kept, p)
		}
	}
	if len(kept) == 0 || text == "" {
		return text
	}
	return "\x1b[" + strings.Join(kept, ";") + "m" + text + "\x1b[0m"
}

// pick returns the first text, or the second where only ASCII can be shown.
func (l *look) pick(text, ascii string) string {
	if l.unicode {
		return text
	}
	return ascii
}

// arrows are the names of keys where only ASCII can be shown.
var arrows = strings.NewReplacer("↑", "Up", "↓", "Down", "←", "Left", "→", "Right")

// keyName is how a key is shown.
func (l *look) keyName(key string) string { return l.pick(key, arrows.Replace(key)) }

// zone is a part of a line that can be clicked.
type zone struct {
	y, from, to int // columns from and before to
	do          func() tea.Cmd
}

// canvas is what is painted: lines, from top to bottom, and where they can be clicked.
type canvas struct {
	*look

	width, height int
	lines         []string
	zones         []zone
}

// left is how many lines are free.
func (c *canvas) left() int { return c.height - len(c.lines) }

// line writes a line. What does not fit is clipped. A selected line is reversed as a whole.
func (c *canvas) line(selected bool, cells ...term.Cell) {
	var b strings.Builder
	free := c.width
	for _, cell := range cells {
		if free <= 0 {
			break
		}
		text := term.Clip(cell.Text, free)
		if !c.unicode {
			text = asciiOnly(text)
		}
		free -= term.Width(text)
		b.WriteString(c.paint(text, cell.Style, selected))
	}
	if selected && free > 0 {
		b.WriteString(c.paint(strings.Repeat(" ", free), reverse, true))
	}
	c.lines = append(c.lines, b.String())
}

// write writes a line.
func (c *canvas) write(cells ...term.Cell) { c.line(false, cells...) }

// fill writes empty lines until so many are left.
func (c *canvas) fill(left int) {
	for c.left() > left {
		c.lines = append(c.lines, "")
	}
}

// rule writes a line across.
func (c *canvas) rule() { c.write(term.C(strings.Repeat(c.pick("─", "-"), c.width), term.Dim)) }

// field writes a line with a name and a value; nothing if the value is empty.
func (c *canvas) field(name string, cells ...term.Cell) {
	if cells[0].Text != "" {
		c.write(append([]term.Cell{term.C(" "+term.Pad(name, 10), term.Dim)}, cells...)...)
	}
}

// click makes a part of the line that is written next clickable.
func (c *canvas) click(from, to int, do func() tea.Cmd) {
	c.zones = append(c.zones, zone{len(c.lines), from, to, do})
}

// asciiOnly replaces what is not ASCII. Widths stay as they are.
func asciiOnly(text string) string {
	var b strings.Builder
	for _, r := range text {
		switch {
		case r < 0x80:
			b.WriteRune(r)
		case r == '…':
			b.WriteByte('~')
		default:
			b.WriteString(strings.Repeat("?", term.Width(string(r))))
		}
	}
	return b.String()
}

// link is a word of a line that can be clicked.
type link struct {
	term.Cell

	do func() tea.Cmd // nil: it cannot
}

// links writes a line of clickable words. Those that do not fit are left out.
func (c *canvas) links(words ...link) {
	var cells []term.Cell
	x := 0
	for _, w := range words {
		wide := term.Width(w.Text)
		if x+wide > c.width {
			break
		}
		if w.do != nil {
			c.click(x, x+wide, w.do)
		}
		cells = append(cells, w.Cell)
		x += wide
	}
	c.write(cells...)
}

// heights are the bars of graphs.
func (l *look) heights() string { return l.pick(term.Heights, "_.:-=+*#") }
