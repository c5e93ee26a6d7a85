package top

import (
	tea "charm.land/bubbletea/v2"

	"github.com/godelayed/delayed/cmd/delayed/internal/term"
)

// helpLines are the lines of the help for the screen that is shown.
func (m *model) helpLines() (lines [][]term.Cell) {
	part := func(title string, keys []binding) {
		if len(lines) > 0 {
			lines = append(lines, nil)
		}
		lines = append(lines, []term.Cell{term.C(" "+title, term.Bold)})
		for _, b := range keys {
			lines = append(lines, []term.Cell{term.C("   " + padded(m.look.keyName(b.key), 14)), term.C(b.what)})
		}
	}
	path := m.current().path()
	part(path[len(path)-1], m.current().keys())
	part("Lists", moving)
	part("Everywhere", append([]binding{
		{key: "t", what: "rates and bars of the last two minutes, or of the last hour"},
	}, everywhere...))
	part("Mouse", []binding{
		{key: "click", what: "select; once more: open; heads of columns sort"},
		{key: "wheel", what: "scroll"},
	})
	return lines
}

// drawHelp writes the help.
func (m *model) drawHelp(c *canvas, left int) {
	lines := m.helpLines()
	room := c.left() - left
	m.helped = max(min(m.helped, len(lines)-room), 0)
	for _, cells := range lines[m.helped:min(m.helped+room, len(lines))] {
		c.say(cells...)
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
	case "tab", "shift+tab", "1", "2", "3", "4":
		return m.globalKey(key)
	default:
		m.help = false
	}
	m.helped = max(m.helped, 0)
	return nil
}

// padded fills up a text with spaces.
func padded(s string, width int) string {
	for term.Width(s) < width {
		s += " "
	}
	return s
}
