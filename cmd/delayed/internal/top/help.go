package top

import (
	"strings"

	tea "charm.land/bubbletea/v2"

	"github.com/godelayed/delayed/cmd/delayed/internal/term"
)

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
		c.say(line.cells...)
	}
}

// helpKey answers a key while the help is shown.
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
