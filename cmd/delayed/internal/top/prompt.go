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
	after int    // bytes of text behind the cursor
	note  string // what can be written
	fault string // what is wrong with what was written

	words  []string                      // that tab completes
	change func(string) tea.Cmd          // called with every key, unless it is nil
	enter  func(string) (tea.Cmd, error) // called by Enter; after an error the line stays
	cancel func() tea.Cmd                // called by Esc, unless it is nil
}

// mostPrompt bounds the line, in bytes.
const mostPrompt = 500

// write handles a key while a line is being written.
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
		p.cut(p.left())
	case "delete", "ctrl+d":
		if p.after > 0 {
			p.after = p.right()
			p.cut(p.left())
		}
	case "left", "ctrl+b":
		p.after = len(p.text) - p.left()
	case "right", "ctrl+f":
		p.after = p.right()
	case "home", "ctrl+a":
		p.after = len(p.text)
	case "end", "ctrl+e":
		p.after = 0
	case "ctrl+u":
		p.cut(0)
	case "ctrl+w":
		word := strings.TrimRightFunc(p.text[:p.cursor()], unicode.IsSpace)
		p.cut(strings.LastIndexByte(word, ' ') + 1)
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

// cursor is the place of the cursor in the text, left that of the character before it.
func (p *prompt) cursor() int { return len(p.text) - p.after }

func (p *prompt) left() int {
	_, n := utf8.DecodeLastRuneInString(p.text[:p.cursor()])
	return p.cursor() - n
}

// right is how many bytes are behind the cursor when it has gone to the right.
func (p *prompt) right() int {
	_, n := utf8.DecodeRuneInString(p.text[p.cursor():])
	return p.after - n
}

// cut deletes what is between a place and the cursor.
func (p *prompt) cut(from int) { p.text = p.text[:from] + p.text[p.cursor():] }

// insert adds what was typed or pasted: what prints of it.
func (p *prompt) insert(text string) {
	for _, r := range text {
		if unicode.IsPrint(r) && len(p.text)+utf8.RuneLen(r) <= mostPrompt {
			at := p.cursor()
			p.text = p.text[:at] + string(r) + p.text[at:]
		}
	}
}

// complete writes what all words that begin like the line have in common, and the next of these words if the line is
// one already.
func (p *prompt) complete() {
	p.after = 0
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

// draw writes the line, with the cursor in view.
func (p *prompt) draw(c *canvas) {
	label := term.C(p.label+" ", term.Bold)
	at := p.cursor()
	before, under, behind := term.Printable(p.text[:at]), " ", ""
	if p.after > 0 {
		next := len(p.text) - p.right()
		under, behind = term.Printable(p.text[at:next]), term.Printable(p.text[next:])
	}
	room := c.width - term.Width(label.Text) - term.Width(under)
	if p.fault != "" { // it is shown behind the text
		room -= min(term.Width(term.Printable(p.fault))+2, c.width*2/3)
	}
	room = max(room, 1)
	for term.Width(before) > room {
		_, n := utf8.DecodeRuneInString(before)
		before = before[n:]
	}
	if left := room - term.Width(before); p.fault != "" && term.Width(behind) > left {
		behind = term.Clip(behind, max(left, 1))
	}
	cells := []term.Cell{label, term.C(before), term.C(under, reverse), term.C(behind)}
	switch {
	case p.fault != "":
		cells = append(cells, term.C("  "+p.fault, term.Red))
	case p.text == "" && p.note != "":
		cells = append(cells, term.C("  "+p.note, term.Dim))
	}
	c.write(cells...)
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
