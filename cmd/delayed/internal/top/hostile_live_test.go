package top

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode"

	tea "charm.land/bubbletea/v2"

	"github.com/godelayed/delayed"
	"github.com/godelayed/delayed/inspect"
	"github.com/godelayed/delayed/internal/redistest"
)

// TestTextsOfStrangers goes through the screens over a queue whose keys somebody has filled with hostile texts, also of
// 1 MiB.
func TestTextsOfStrangers(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t) // the texts are large
	redistest.FillHostile(redistest.DoOn(server.Dial(t)), "", "mail")
	rdb, err := delayed.Dial(server.URL())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { rdb.Close() })
	ins, err := inspect.New(rdb, inspect.Config{})
	if err != nil {
		t.Fatal(err)
	}
	states := map[string][]string{}
	for i, s := range inspect.States {
		keys := []string{"enter"}
		for range i {
			keys = append(keys, "right")
		}
		states[s.String()] = keys
	}
	others := map[string][]string{
		"queues": nil, "workers": {"2"}, "worker": {"2", "enter"}, "functions": {"3"}, "cron": {"5"}, "groups": {"6"},
		"audit": {"7"},
	}
	seen := 0
	for _, group := range []map[string][]string{states, others} {
		for name, keys := range group {
			b := liveBench(t, ins)
			b.keys(keys...)
			seen += b.checkPrintable(name)
			b.keys("down", "enter")
			seen += b.checkPrintable("behind " + name)
		}
	}
	if seen < 10 {
		t.Errorf("%d screens show hostile texts, expected at least 10", seen)
	}
	b := liveBench(t, ins)
	b.keys("4")
	do := redistest.DoOn(server.Dial(t))
	var publishing sync.WaitGroup
	publishing.Go(func() { publishUntilTheEnd(t.Context(), do) })
	t.Cleanup(publishing.Wait) // before the connection is closed
	b.until("events are shown", func() bool { return strings.Contains(b.screen(), `mailbox\nfull:`) })
	b.checkPrintable("events")
}

// publishUntilTheEnd publishes events, because nobody tells when top listens.
func publishUntilTheEnd(ctx context.Context, do func(string, ...any) any) {
	ticker := time.NewTicker(50 * time.Millisecond)
	defer ticker.Stop()
	for i := 0; ; i++ {
		text := redistest.HostileTexts[i%2]
		do("PUBLISH", "mail_events", redistest.HostileEvents(text[:min(len(text), 20<<10)]))
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return
		}
	}
}

// liveBench is a bench whose model reads a real Redis.
func liveBench(t *testing.T, ins *inspect.Inspector) *bench {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	b := &bench{t: t, src: newFake(), msgs: make(chan tea.Msg, 100)}
	b.m = newModel(ctx, Config{Where: "redis.example.com:6379/0", Unicode: true}, newLive(ins))
	b.m.after = func(time.Duration, tea.Msg) tea.Cmd { return nil }
	t.Cleanup(func() {
		cancel()
		b.m.work.shut()
	})
	b.run(b.m.Init())
	b.send(tea.WindowSizeMsg{Width: 120, Height: 40})
	return b
}

// checkPrintable fails the test if the screen has what only attackers write. It returns 1 if the screen shows a hostile
// text, else 0.
func (b *bench) checkPrintable(where string) int {
	b.t.Helper()
	text := b.screen()
	for _, r := range text {
		if r != '\n' && !unicode.IsPrint(r) {
			b.t.Errorf("%s has %U:\n%q", where, r, text)
			break
		}
	}
	if strings.Contains(text, "mailbox") {
		return 1
	}
	return 0
}
