package top

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	tea "charm.land/bubbletea/v2"

	"github.com/godelayed/delayed/cmd/delayed/internal/term"
)

// prompt is a line that is being written at the bottom of the screen.
type prompt struct {
	label string
	text  string
	note  string // what can be written
	fault string // what is wrong with what was written

	words  []string                      // that tab completes
	change func(string) tea.Cmd          // called with every key, unless it is nil
	enter  func(string) (tea.Cmd, error) // called by Enter; after an error the line stays
	cancel func() tea.Cmd                // called by Esc, unless it is nil
}

// mostPrompt bounds the line, in bytes.
const mostPrompt = 500

// write answers a key while a line is being written.
func (m *model) write(msg tea.KeyPressMsg) tea.Cmd {
	p := m.prompt
	before := p.text
	switch key := msg.Keystroke(); key {
	case "enter":
		cmd, err := p.enter(strings.TrimSpace(p.text))
		if err != nil {
			p.fault = errText(err)
			return nil
		}
		if m.prompt == p {
			m.prompt = nil
		}
		return cmd
	case "esc":
		m.prompt = nil
		if p.cancel != nil {
			return p.cancel()
		}
		return nil
	case "backspace", "ctrl+h":
		_, n := utf8.DecodeLastRuneInString(p.text)
		p.text = p.text[:len(p.text)-n]
	case "ctrl+u":
		p.text = ""
	case "ctrl+w":
		cut := strings.TrimRightFunc(p.text, unicode.IsSpace)
		p.text = cut[:strings.LastIndexByte(cut, ' ')+1]
	case "tab":
		p.complete()
	default:
		p.insert(msg.Text)
	}
	p.fault = ""
	if p.change != nil && p.text != before {
		return p.change(p.text)
	}
	return nil
}

// insert adds what was typed or pasted: what prints of it.
func (p *prompt) insert(text string) {
	for _, r := range text {
		if unicode.IsPrint(r) && len(p.text)+utf8.RuneLen(r) <= mostPrompt {
			p.text += string(r)
		}
	}
}

// complete writes what all words that begin like the line have in common, and the next of these words if the line is
// one already.
func (p *prompt) complete() {
	if i := slices.Index(p.words, p.text); i >= 0 {
		p.text = p.words[(i+1)%len(p.words)]
		return
	}
	var found []string
	for _, w := range p.words {
		if strings.HasPrefix(w, p.text) {
			found = append(found, w)
		}
	}
	if len(found) == 0 {
		return
	}
	common := found[0]
	for _, w := range found[1:] {
		for !strings.HasPrefix(w, common) {
			_, n := utf8.DecodeLastRuneInString(common)
			common = common[:len(common)-n]
		}
	}
	if common == p.text {
		common = found[0]
	}
	p.text = common
}

// draw writes the line, with its end in view.
func (p *prompt) draw(c *canvas) {
	label := term.C(p.label+" ", term.Bold)
	room := max(c.width-term.Width(label.Text)-1, 1)
	shown := term.Printable(p.text)
	for term.Width(shown) > room {
		_, n := utf8.DecodeRuneInString(shown)
		shown = shown[n:]
	}
	cells := []term.Cell{label, term.C(shown), term.C(" ", reverse)}
	switch {
	case p.fault != "":
		cells = append(cells, term.C("  "+p.fault, term.Red))
	case p.text == "" && p.note != "":
		cells = append(cells, term.C("  "+p.note, term.Dim))
	}
	c.say(cells...)
}

// askFilter lets one write the filter of the screen.
func (m *model) askFilter() {
	s := m.current()
	p := &prompt{label: "filter:", text: s.filter(), note: "text to look for; Enter keeps it, Esc removes it"}
	p.enter = s.setFilter
	p.cancel = func() tea.Cmd {
		cmd, _ := s.setFilter("") // no filter is never wrong
		return cmd
	}
	if t, ok := s.screen.(*tasksScreen); ok {
		p.note = t.filterNote()
	} else {
		p.change = func(text string) tea.Cmd {
			cmd, _ := s.setFilter(text) // any text can be looked for
			return cmd
		}
	}
	m.prompt = p
}
