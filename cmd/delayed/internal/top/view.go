package top

import (
	"strconv"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/godelayed/delayed/cmd/delayed/internal/term"
)

// The smallest terminal on which something can be shown.
const (
	leastWidth  = 40
	leastHeight = 10
)

// View paints the screen.
func (m *model) View() tea.View {
	v := tea.NewView(strings.Join(m.paint().lines, "\n"))
	v.AltScreen = true
	v.MouseMode = tea.MouseModeCellMotion
	v.WindowTitle = "delayed top"
	return v
}

// paint writes all lines of the screen.
func (m *model) paint() *canvas {
	c := &canvas{look: &m.look, width: m.width, height: m.height}
	if m.width < leastWidth || m.height < leastHeight {
		c.write(term.C("delayed top needs a terminal of " + strconv.Itoa(leastWidth) + "x" +
			strconv.Itoa(leastHeight) + " or more"))
		return c
	}
	m.drawTabs(c)
	m.drawPath(c)
	foot := 1
	if m.dialog != nil {
		foot += dialogLines
	}
	switch {
	case m.help:
		m.drawHelp(c, foot)
	default:
		m.current().draw(c, foot)
	}
	c.lines = c.lines[:min(len(c.lines), c.height-foot)]
	c.fill(foot)
	if m.dialog != nil || m.prompt != nil {
		c.zones = nil // what is asked must be answered first
	}
	if m.dialog != nil {
		m.drawDialog(c)
	}
	m.drawFoot(c)
	return c
}

// tabsWidth is how many columns the first line takes without the name of the Redis that is shown.
var tabsWidth = func() int {
	wide := term.Width(" delayed ")
	for _, name := range theTabs {
		wide += term.Width(" 1 " + name + " ")
	}
	return wide
}()

// drawTabs writes the first line: the screens and, where there is room for it, which Redis is shown.
func (m *model) drawTabs(c *canvas) {
	words := []link{{term.C(" delayed ", term.Bold), nil}}
	used := tabsWidth
	for i, name := range theTabs {
		style := term.Plain
		if i == m.tab {
			style = reverse
		}
		text := " " + strconv.Itoa(i+1) + " " + name + " "
		words = append(words, link{term.C(text, style), func() tea.Cmd { return m.show(i) }})
	}
	if where := m.where(c.width - used); where != "" {
		gap := strings.Repeat(" ", c.width-used-term.Width(where))
		words = append(words, link{term.C(gap), nil}, link{term.C(where, term.Dim), nil})
	}
	c.links(words...)
}

// leastWhere is how many columns must be free to name the Redis that is shown.
const leastWhere = 12

// where names the Redis that is shown, in so many columns; "" if they are too few.
func (m *model) where(free int) string {
	if free < leastWhere {
		return ""
	}
	return term.Clip(m.cfg.Where, free-3) + " "
}

// drawPath writes the second line: where one is, and the filter; or that Redis is away.
func (m *model) drawPath(c *canvas) {
	p := m.current()
	if p.err != nil {
		text := " Redis does not answer"
		if !p.at.IsZero() {
			text += "; this is from " + term.Duration(m.now().Sub(p.at).Truncate(time.Second)) + " ago"
		}
		c.write(term.C(text+": ", boldRed), term.C(errText(p.err), term.Red))
		return
	}
	cells := []term.Cell{term.C(" ")}
	for i, name := range p.path() {
		if i > 0 {
			cells = append(cells, term.C(c.pick(" › ", " > "), term.Dim))
		}
		cells = append(cells, term.C(term.Clip(name, 60), boldBlue))
	}
	if f := p.filter(); f != "" {
		cells = append(cells, term.C("  filter: ", term.Dim), term.C(f, term.Yellow))
	}
	if p.at.IsZero() {
		if _, ok := p.screen.(*eventsScreen); !ok {
			cells = append(cells, term.C("  reading…", term.Dim))
		}
	}
	if m.where(c.width-tabsWidth) == "" { // the first line has no room for it
		used := 0
		for _, cell := range cells {
			used += term.Width(term.Clip(cell.Text, c.width))
		}
		if where := m.where(c.width - used); where != "" {
			cells = append(cells, term.C(strings.Repeat(" ", c.width-used-term.Width(where))), term.C(where, term.Dim))
		}
	}
	c.write(cells...)
}

// drawFoot writes the last line: what is being written, what was done, or the keys.
func (m *model) drawFoot(c *canvas) {
	switch {
	case m.prompt != nil:
		m.prompt.draw(c)
		return
	case m.dialog != nil:
		c.write() // its own keys stand above
		return
	case m.job != nil:
		c.write(term.C(" "+m.job.text(), term.Yellow))
		return
	case m.note.Text != "" && m.now().Sub(m.noteAt) < noteTime:
		c.write(term.C(" "+m.note.Text, m.note.Style))
		return
	}
	keys := m.current().keys()
	if m.help {
		keys = []binding{{key: "↑ ↓", hint: "scroll"}, {key: "Esc", hint: "close"}}
	}
	last := []binding{{key: "/", hint: "filter"}, {key: "?", hint: "help"}, {key: "q", hint: "quit"}}
	switch _, task := m.current().screen.(*taskScreen); {
	case m.help:
		last = last[2:]
	case task:
		last[0] = binding{key: "Esc", hint: "back"}
	}
	// The last ones are always shown, and of the others as many as there is room for.
	room := c.width
	for _, b := range last {
		room -= m.hintWidth(b)
	}
	var shown []binding
	for _, b := range keys {
		if b.hint != "" && m.hintWidth(b) <= room {
			room -= m.hintWidth(b)
			shown = append(shown, b)
		}
	}
	var words []link
	for _, b := range append(shown, last...) {
		press := func() tea.Cmd { return m.press(b) }
		words = append(words, link{term.C(" "+m.look.keyName(b.key), term.Bold), press},
			link{term.C(" "+b.hint+" ", term.Dim), press})
	}
	c.links(words...)
}

// hintWidth is how many columns a key takes in the last line.
func (m *model) hintWidth(b binding) int {
	return term.Width(m.look.keyName(b.key)) + term.Width(b.hint) + 3
}

// press does what a key does that is shown.
func (m *model) press(b binding) tea.Cmd {
	key := b.send
	if key == "" {
		key = strings.ToLower(b.key)
		if len(b.key) == 1 {
			key = b.key
		}
	}
	if m.help {
		return m.helpKey(key)
	}
	if cmd, known := m.current().key(key); known {
		return cmd
	}
	return m.globalKey(key)
}

// helpLine is a line of the help.
type helpLine struct {
	cells []term.Cell
	press func() tea.Cmd // what a click on it does: that of its key; nil: nothing
}

// helpLines are the lines of the help for the screen that is shown.
func (m *model) helpLines() (lines []helpLine) {
	part := func(title string, keys []binding) {
		if len(lines) > 0 {
			lines = append(lines, helpLine{})
		}
		lines = append(lines, helpLine{cells: []term.Cell{term.C(" "+title, term.Bold)}})
		for _, b := range keys {
			line := helpLine{cells: []term.Cell{term.C("   " + term.Pad(m.look.keyName(b.key), 14)), term.C(b.what)}}
			if b.send != "" || !strings.Contains(b.key, " ") { // one key
				line.press = func() tea.Cmd {
					m.help = false
					return m.press(b)
				}
			}
			lines = append(lines, line)
		}
	}
	path := m.current().path()
	part(path[len(path)-1], m.current().keys())
	part("Lists", moveKeys)
	part("Everywhere", append([]binding{
		{key: "t", what: "rates and bars of the last two minutes, or of the last hour"},
	}, everywhere...))
	part("Mouse", []binding{
		{key: "a click", what: "select; once more: open; heads of columns sort"},
		{key: "a click on", what: "words of the first and last line, lines of the help: that key"},
		{key: "the wheel", what: "scroll"},
	})
	return lines
}

// drawHelp writes the help.
func (m *model) drawHelp(c *canvas, left int) {
	lines := m.helpLines()
	room := c.left() - left
	m.helped = max(min(m.helped, len(lines)-room), 0)
	for _, line := range lines[m.helped:min(m.helped+room, len(lines))] {
		if line.press != nil {
			c.click(0, c.width, line.press)
		}
		c.write(line.cells...)
	}
}

// helpKey handles a key while the help is shown.
func (m *model) helpKey(key string) tea.Cmd {
	page := max(m.height-4, 1)
	switch key {
	case "up", "k":
		m.helped--
	case "down", "j":
		m.helped++
	case "pgup":
		m.helped -= page
	case "pgdown", "space":
		m.helped += page
	case "home", "g":
		m.helped = 0
	case "ctrl+c":
		return m.quit()
	case "q":
		return m.quit()
	case "tab", "shift+tab":
		return m.globalKey(key)
	default:
		if _, ok := tabOf(key); ok {
			return m.globalKey(key)
		}
		m.help = false
	}
	m.helped = max(m.helped, 0)
	return nil
}
