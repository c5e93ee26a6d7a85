package top

import (
	"context"
	"flag"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/godelayed/delayed/internal/redistest"
)

// The flag -update writes the golden screens anew: make generate.
var update = flag.Bool("update", false, "write golden screens anew")

// binaries is a folder for the command delayed, see newTerminal.
var binaries string

func TestMain(m *testing.M) {
	redistest.SideBySide()
	dir, err := os.MkdirTemp("", "delayed-top-")
	if err != nil {
		panic(err)
	}
	binaries = dir
	code := redistest.Main(m)
	os.RemoveAll(dir)
	os.Exit(code)
}

// noon is when everything is shown.
var noon = time.Date(2026, 1, 31, 12, 0, 0, 0, time.UTC)

func before(d time.Duration) time.Time { return noon.Add(-d) }

// bench is a model with a fake source. Commands run at once, except those that wait for events.
type bench struct {
	t     *testing.T
	m     *model
	src   *fake
	waits []time.Duration // after which something is due
	msgs  chan tea.Msg
}

func newBench(t *testing.T, width, height int) *bench {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	b := &bench{t: t, src: newFake(), msgs: make(chan tea.Msg, 100)}
	b.m = newModel(ctx, Config{Where: "redis.example.com:6379/0", Unicode: true}, b.src)
	b.m.now = func() time.Time { return noon }
	b.m.after = func(d time.Duration, msg tea.Msg) tea.Cmd {
		b.waits = append(b.waits, d)
		return nil
	}
	t.Cleanup(func() {
		cancel()
		b.m.work.shut()
	})
	b.run(b.m.Init())
	b.send(tea.WindowSizeMsg{Width: width, Height: height})
	b.src.asked()
	return b
}

// send gives the model a message and runs what follows from it.
func (b *bench) send(msg tea.Msg) {
	b.t.Helper()
	_, cmd := b.m.Update(msg)
	b.m.View() // as the framework does
	b.run(cmd)
}

func (b *bench) run(cmd tea.Cmd) {
	b.t.Helper()
	if cmd == nil {
		return
	}
	if s, ok := b.m.current().screen.(*eventsScreen); ok && s.stream != nil || b.src.more != nil {
		go func() { b.msgs <- cmd() }()
		return
	}
	b.take(cmd())
}

// take gives the model what a command has returned.
func (b *bench) take(msg tea.Msg) {
	b.t.Helper()
	switch msg := msg.(type) {
	case nil, tea.QuitMsg:
	case tea.BatchMsg:
		for _, cmd := range msg {
			b.run(cmd)
		}
	default:
		b.send(msg)
	}
}

// until takes what commands return until a condition holds.
func (b *bench) until(what string, cond func() bool) {
	b.t.Helper()
	limit := time.NewTimer(redistest.Patience)
	defer limit.Stop()
	for !cond() {
		select {
		case msg := <-b.msgs:
			b.take(msg)
		case <-limit.C:
			b.t.Fatalf("waited in vain until %s:\n%s", what, b.screen())
		}
	}
}

// keys presses keys: words are names of keys, all else is typed.
func (b *bench) keys(keys ...string) {
	b.t.Helper()
	named := map[string]tea.KeyPressMsg{
		"enter": {Code: tea.KeyEnter}, "esc": {Code: tea.KeyEscape}, "tab": {Code: tea.KeyTab}, "up": {Code: tea.KeyUp},
		"down": {Code: tea.KeyDown}, "left": {Code: tea.KeyLeft}, "right": {Code: tea.KeyRight},
		"pgup": {Code: tea.KeyPgUp}, "pgdown": {Code: tea.KeyPgDown}, "home": {Code: tea.KeyHome},
		"end": {Code: tea.KeyEnd}, "space": {Code: tea.KeySpace, Text: " "}, "backspace": {Code: tea.KeyBackspace},
		"shift+tab": {Code: tea.KeyTab, Mod: tea.ModShift}, "ctrl+u": {Code: 'u', Mod: tea.ModCtrl},
		"delete": {Code: tea.KeyDelete}, "ctrl+w": {Code: 'w', Mod: tea.ModCtrl},
		"ctrl+r": {Code: 'r', Mod: tea.ModCtrl},
	}
	for _, key := range keys {
		if msg, ok := named[key]; ok {
			b.send(msg)
			continue
		}
		for _, r := range key {
			b.send(tea.KeyPressMsg{Code: r, Text: string(r)})
		}
	}
}

// screen is what is shown, without colours.
func (b *bench) screen() string { return sgr.ReplaceAllString(b.m.View().Content, "") }

// line returns the first line that has a text.
func (b *bench) line(text string) string {
	for line := range strings.SplitSeq(b.screen(), "\n") {
		if strings.Contains(line, text) {
			return line
		}
	}
	return ""
}

// shows fails the test unless the screen has all of some texts.
func (b *bench) shows(texts ...string) {
	b.t.Helper()
	for _, text := range texts {
		if !strings.Contains(b.screen(), text) {
			b.t.Fatalf("the screen has no %q:\n%s", text, b.screen())
		}
	}
}

// hides fails the test if the screen has a text.
func (b *bench) hides(text string) {
	b.t.Helper()
	if strings.Contains(b.screen(), text) {
		b.t.Fatalf("the screen has %q:\n%s", text, b.screen())
	}
}

// asked fails the test unless the source was asked so.
func (b *bench) asked(want string) {
	b.t.Helper()
	if got := b.src.asked(); got != want {
		b.t.Fatalf("the source was asked %q, expected %q", got, want)
	}
}

// sgr are the sequences of colours.
var sgr = regexp.MustCompile("\x1b\\[[0-9;]*m")

// hasAsked reports whether the source was asked so, since asked was called last.
func (b *bench) hasAsked(call string) bool {
	b.src.mu.Lock()
	defer b.src.mu.Unlock()
	return slices.Contains(b.src.calls, call)
}
