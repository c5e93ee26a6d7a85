package top

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/godelayed/delayed/cmd/delayed/internal/term"
)

// model is all that is shown. It is used by one goroutine; what reads Redis runs beside it and sends it messages.
type model struct {
	ctx  context.Context // the framework calls back without one
	cfg  Config
	src  source
	look look
	work gate // what runs beside and must end before the program does

	width, height int
	tabs          [len(theTabs)]*place
	tab           int
	stack         []*place // the screens that were opened from the tab

	span   span
	fetch  fetching
	prompt *prompt // a line that is being written
	dialog *dialog // a question
	job    *job    // a bulk action that goes on
	help   bool
	helped int       // the first line of the help that is shown
	note   term.Cell // what was done, or has gone wrong
	noteAt time.Time

	after func(time.Duration, tea.Msg) tea.Cmd // sends a message later
	now   func() time.Time
}

// theTabs are the names of the screens that tab leads to.
var theTabs = [...]string{"Queues", "Workers", "Functions", "Events", "Cron", "Groups", "Audit"}

func newModel(ctx context.Context, cfg Config, src source) *model {
	m := &model{
		ctx: ctx, cfg: cfg, src: src, look: look{color: cfg.Color, unicode: cfg.Unicode}, width: 80, height: 24,
		now: time.Now,
	}
	if m.cfg.Interval <= 0 {
		m.cfg.Interval = DefaultInterval
	}
	m.after = func(d time.Duration, msg tea.Msg) tea.Cmd {
		return tea.Tick(d, func(time.Time) tea.Msg { return msg })
	}
	// What the screens open later has the context of the model.
	m.tabs = [...]*place{
		{screen: newQueuesScreen(m)},      //nolint:contextcheck // see above
		{screen: newWorkersScreen(m, "")}, //nolint:contextcheck // see above
		{screen: newFunctionsScreen(m, "")},
		{screen: newEventsScreen(m, "")},
		{screen: newCronScreen(m)}, //nolint:contextcheck // see above
		{screen: newGroupsScreen(m)},
		{screen: newAuditScreen(m)},
	}
	return m
}

// Init begins to read.
func (m *model) Init() tea.Cmd { return m.refresh() }

// Update takes in a message.
func (m *model) Update(msg tea.Msg) (tea.Model, tea.Cmd) { return m, m.update(msg) }

func (m *model) update(msg tea.Msg) tea.Cmd {
	switch msg := msg.(type) {
	case tea.WindowSizeMsg:
		m.width, m.height = msg.Width, msg.Height
		return m.refresh() // the tasks of a page are as many as fit
	case tea.KeyPressMsg:
		return m.key(msg)
	case tea.PasteMsg:
		if m.prompt != nil {
			m.prompt.insert(msg.Content)
		}
	case tea.MouseClickMsg:
		return m.click(msg.X, msg.Y, msg.Button)
	case tea.MouseWheelMsg:
		return m.wheel(msg.Button)
	case fetchedMsg:
		return m.fetched(msg)
	case refreshMsg:
		if msg.seq == m.fetch.seq {
			return m.refresh()
		}
	case then:
		return msg()
	case calmMsg:
		msg.to.calmed(msg)
	case eventsMsg:
		return msg.to.arrived(msg)
	case jobMsg:
		return m.watchJob(msg.job)
	}
	return nil
}

// then is the message of a command that has ended: what the model does now.
type then func() tea.Cmd

// here returns a function that reports whether one is still on the same screen, and is not asked anything.
func (m *model) here() func() bool {
	tab, depth := m.tab, len(m.stack)
	return func() bool { return m.tab == tab && len(m.stack) == depth && m.dialog == nil && m.prompt == nil }
}

// current is the screen that is shown.
func (m *model) current() *place {
	if n := len(m.stack); n > 0 {
		return m.stack[n-1]
	}
	return m.tabs[m.tab]
}

// open goes into a screen.
func (m *model) open(s screen) tea.Cmd {
	m.leave()
	m.stack = append(m.stack, &place{screen: s})
	return m.refresh()
}

// back goes back to where one came from.
func (m *model) back() tea.Cmd {
	if len(m.stack) == 0 {
		return nil
	}
	m.leave()
	m.stack = m.stack[:len(m.stack)-1]
	return m.refresh()
}

// show goes to one of the tabs.
func (m *model) show(tab int) tea.Cmd {
	m.leave()
	m.tab, m.stack, m.help = (tab+len(m.tabs))%len(m.tabs), nil, false
	return m.refresh()
}

// leave is called before another screen is shown.
func (m *model) leave() {
	m.note = term.Cell{}
	if l, ok := m.current().screen.(leaver); ok {
		l.leave()
	}
}

// key handles a key.
func (m *model) key(msg tea.KeyPressMsg) tea.Cmd {
	key := msg.Keystroke()
	if msg.Text != "" && msg.Text != " " {
		key = msg.Text
	}
	switch {
	case key == "ctrl+c":
		return m.quit()
	case m.dialog != nil:
		return m.answer(key)
	case m.prompt != nil:
		return m.write(msg)
	case m.help:
		return m.helpKey(key)
	case m.job != nil && key == "esc":
		m.job.stopped.Store(true)
		return nil
	}
	m.note = term.Cell{}
	if cmd, known := m.current().key(key); known {
		return cmd
	}
	return m.globalKey(key)
}

// tabOf returns the screen that a digit leads to.
func tabOf(key string) (tab int, ok bool) {
	n, err := strconv.Atoi(key)
	return n - 1, err == nil && n >= 1 && n <= len(theTabs)
}

// notify shows what was done in the last line, for a while.
func (m *model) notify(note term.Cell) { m.note, m.noteAt = note, m.now() }

// noteTime is how long that is.
const noteTime = 8 * time.Second

// globalKey handles a key that works on every screen.
func (m *model) globalKey(key string) tea.Cmd {
	if tab, ok := tabOf(key); ok {
		return m.show(tab)
	}
	switch key {
	case "q":
		return m.quit()
	case "esc", "backspace":
		if m.current().filter() != "" {
			cmd, _ := m.current().setFilter("")
			return cmd
		}
		return m.back()
	case "tab":
		return m.show(m.tab + 1)
	case "shift+tab":
		return m.show(m.tab - 1)
	case "/":
		m.askFilter()
	case "i":
		m.askID()
	case "?":
		m.help, m.helped = true, 0
	case "t":
		m.span = (m.span + 1) % spans
		return m.refresh()
	case "ctrl+r", "f5":
		return m.refresh()
	case "ctrl+z":
		return tea.Suspend
	}
	return nil
}

// quit ends the program.
func (m *model) quit() tea.Cmd {
	m.leave()
	return tea.Quit
}

// click handles a click of the mouse.
func (m *model) click(x, y int, button tea.MouseButton) tea.Cmd {
	if button != tea.MouseLeft {
		return nil
	}
	zones := m.paint().zones
	for _, z := range slices.Backward(zones) {
		if z.y == y && x >= z.from && x < z.to {
			return z.do()
		}
	}
	return nil
}

// wheelLines is how far one turn of the wheel goes.
const wheelLines = 3

func (m *model) wheel(button tea.MouseButton) tea.Cmd {
	key := map[tea.MouseButton]string{tea.MouseWheelUp: "up", tea.MouseWheelDown: "down"}[button]
	if key == "" || m.dialog != nil || m.prompt != nil {
		return nil
	}
	var cmds []tea.Cmd
	for range wheelLines {
		if m.help {
			m.helpKey(key)
			continue
		}
		cmd, _ := m.current().key(key)
		cmds = append(cmds, cmd)
	}
	return tea.Batch(cmds...)
}

// errText is what is shown of an error, on one line.
func errText(err error) string {
	if errors.Is(err, context.DeadlineExceeded) {
		return "no answer in time"
	}
	text := strings.ReplaceAll(err.Error(), "\n", "; ")
	for _, prefix := range []string{"delayed: ", "inspect: "} {
		if rest, ok := strings.CutPrefix(text, prefix); ok && rest != "" {
			return rest
		}
	}
	return text
}
