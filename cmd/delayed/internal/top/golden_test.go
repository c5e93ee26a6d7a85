package top

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode"

	tea "charm.land/bubbletea/v2"

	"github.com/godelayed/delayed/cmd/delayed/internal/term"
)

// screens say by which keys each screen is reached.
var screens = map[string][]string{
	"queues":    {"down"},
	"problems":  {"!"},
	"workers":   {"2"},
	"worker":    {"2", "enter"},
	"functions": {"3"},
	"events":    {"4"},
	"cron":      {"5"},
	"entry":     {"5", "enter"},
	"groups":    {"6"},
	"audit":     {"7"},
	"tasks":     {"down", "enter", "right", "right", "right", "down", "space", "space"},
	"task":      {"down", "enter", "right", "right", "right", "enter"},
	"active":    {"down", "enter", "right", "enter"},
	"completed": {"down", "enter", "left", "enter"},
	"help":      {"down", "enter", "?"},
	"confirm":   {"down", "enter", "right", "right", "right", "r"},
	"confirmed": {"down", "enter", "right", "right", "right", "r", "y"},
	"move":      {"down", "enter", "m", "b"},
	"filter":    {"down", "enter", "/"},

	"reschedule": {"down", "enter", "right", "right", "right", "R", "15m"},
	"edit":       {"down", "enter", "right", "right", "right", "enter", "e"},
}

// at goes to a screen. The log of events comes by itself.
func at(t *testing.T, name string, width, height int, color, unicode bool) *bench {
	t.Helper()
	b := newBench(t, width, height)
	b.m.look = look{color: color, unicode: unicode}
	b.keys(screens[name]...)
	if name == "events" {
		b.until("all events are shown", func() bool { return strings.Contains(b.screen(), "worker paused") })
	}
	return b
}

// TestGolden holds the screens against testdata, at the sizes and in the colours that terminals have.
func TestGolden(t *testing.T) {
	t.Parallel()
	for name := range screens {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var all strings.Builder
			for _, v := range []struct {
				width, height  int
				color, unicode bool
			}{{80, 24, false, true}, {120, 40, false, true}, {80, 24, true, true}, {80, 24, false, false}} {
				b := at(t, name, v.width, v.height, v.color, v.unicode)
				text := strings.ReplaceAll(b.m.View().Content, "\x1b", "␛")
				fmt.Fprintf(&all, "== %dx%d, colours %v, Unicode %v\n%s\n", v.width, v.height, v.color, v.unicode, text)
				b.keys("esc")
			}
			file := filepath.Join("testdata", name+".txt")
			if *update {
				if err := os.WriteFile(file, []byte(all.String()), 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			want, err := os.ReadFile(file)
			if err != nil || string(want) != all.String() {
				t.Errorf("%s is not what is shown now (%v):\n%s", file, err, all.String())
			}
		})
	}
}

// TestScreensFit shows every screen on terminals of many sizes.
func TestScreensFit(t *testing.T) {
	t.Parallel()
	for name := range screens {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := at(t, name, 80, 24, true, true)
			for _, width := range []int{1, 39, 40, 41, 57, 80, 99, 100, 131, 400} {
				for _, height := range []int{1, 9, 10, 11, 24, 31, 32, 33, 100} {
					b.m.width, b.m.height = width, height
					lines := strings.Split(b.screen(), "\n")
					if len(lines) > height {
						t.Errorf("at %dx%d there are %d lines", width, height, len(lines))
					}
					for _, line := range lines {
						if n := term.Width(line); n > width {
							t.Errorf("at %dx%d a line has %d columns: %s", width, height, n, line)
						}
					}
				}
			}
		})
	}
}

// TestWithoutColours allows bold, dim and reversed texts, which are no colours.
func TestWithoutColours(t *testing.T) {
	t.Parallel()
	for name := range screens {
		b := at(t, name, 120, 40, false, false)
		text := b.m.View().Content
		for _, code := range sgr.FindAllString(text, -1) {
			if strings.ContainsAny(code, "34569") {
				t.Errorf("%s: a colour without colours: %q", name, code)
			}
		}
		for _, r := range text {
			if r >= 0x80 {
				t.Errorf("%s: %q on a terminal that shows ASCII only", name, r)
				break
			}
		}
	}
}

// TestHostileTexts shows hostile texts wherever texts are shown.
func TestHostileTexts(t *testing.T) {
	t.Parallel()
	check := func(b *bench, where string) {
		t.Helper()
		for _, r := range b.screen() {
			if r != '\n' && !unicode.IsPrint(r) {
				t.Errorf("%s has %U:\n%q", where, r, b.screen())
				return
			}
		}
	}
	long := strings.Repeat(hostile, (1<<20)/len(hostile))
	for _, width := range []int{80, 120} {
		for name, keys := range screens {
			b := newBench(t, width, 40)
			for i := range b.src.queues {
				b.src.queues[i].Name += hostile
			}
			b.src.speed = map[string]queueFlow{}
			for i := range b.src.queues {
				name := b.src.queues[i].Name
				b.src.speed[name] = queueFlow{functions: []functionFlow{{queue: name, path: hostile}}}
			}
			for i := range b.src.work {
				w := &b.src.work[i]
				w.ID, w.Host, w.Order, w.Program, w.Version = hostile, hostile, hostile, hostile, hostile
				w.Queues[0].Name = "mail" + hostile
				for n := range w.Running {
					w.Running[n].Function = hostile
				}
			}
			for i := range b.src.tasks {
				task := &b.src.tasks[i]
				task.Queue, task.Call = "mail"+hostile, long
				task.Error, task.Worker, task.Options.Lock = long, hostile, hostile
				task.Result = hostile
				for n := range task.Failures {
					task.Failures[n].Worker, task.Failures[n].Error, task.Failures[n].Stack = hostile, long, hostile
				}
			}
			for i := range b.src.crons {
				e := &b.src.crons[i]
				e.Queue, e.Name, e.Spec, e.Zone, e.Owner = hostile, hostile, hostile, hostile, hostile
				e.Function = hostile
			}
			for i := range b.src.ticks {
				b.src.ticks[i].ID, b.src.ticks[i].Skipped = hostile, hostile
			}
			for i := range b.src.gather {
				g := &b.src.gather[i]
				g.Queue, g.Key, g.Function = hostile, long, hostile
			}
			for i := range b.src.log {
				r := &b.src.log[i]
				r.Actor, r.Action, r.Queue, r.State, r.IDs = hostile, hostile, hostile, hostile, []string{long}
			}
			for i := range b.src.found.Problems {
				p := &b.src.found.Problems[i]
				p.Queue, p.Text, p.Advice, p.Command = hostile, hostile, hostile, hostile
			}
			b.src.fault = errors.New(hostile)
			for i := range b.src.events {
				e := &b.src.events[i]
				e.Queue, e.Function, e.ID, e.Error, e.Worker = hostile, hostile, hostile, hostile, hostile
			}
			b.m.cfg.Where = hostile
			b.keys("ctrl+r")
			b.keys(keys...)
			if name == "events" {
				b.until("all events are shown", func() bool { return strings.Contains(b.screen(), "worker paused") })
			}
			if !strings.Contains(b.screen(), `\x1b[31m`) {
				t.Errorf("%s shows no hostile text:\n%s", name, b.screen())
			}
			check(b, name)
			b.send(tea.PasteMsg{Content: hostile})
			check(b, "pasted into "+name)
			b.keys("y", "esc", "esc")
			check(b, "behind "+name)
		}
	}
	b := newBench(t, 80, 24)
	b.src.fail(fmt.Errorf("redis: %s", hostile))
	b.keys("ctrl+r")
	check(b, "an error")
}
