package top

import (
	tea "charm.land/bubbletea/v2"

	"github.com/godelayed/delayed/cmd/delayed/internal/term"
)

// dialog is a question that is answered by yes or no.
type dialog struct {
	question, detail string
	yes              func() tea.Cmd
}

// dialogLines is how many lines a question takes.
const dialogLines = 4

// answer answers a key while a question is asked: anything but yes and what follows it means no.
func (m *model) answer(key string) tea.Cmd {
	d := m.dialog
	switch key {
	case "y", "Y":
		m.dialog = nil
		return d.yes()
	case "n", "N", "esc", "q", "enter":
		m.dialog = nil
		m.say(term.C("nothing was done"))
	}
	return nil
}

// drawDialog writes the question.
func (m *model) drawDialog(c *canvas) {
	d := m.dialog
	c.rule()
	c.say(term.C(" "+d.question, term.Bold))
	c.say(term.C(" "+d.detail, term.Dim))
	press := func(key string) func() tea.Cmd { return func() tea.Cmd { return m.answer(key) } }
	c.links(link{term.C(" "), nil}, link{term.C("[y] yes", boldGreen), press("y")}, link{term.C("   "), nil},
		link{term.C("[n] no", boldRed), press("n")})
}
