package top

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/godelayed/delayed/inspect"
	"github.com/godelayed/delayed/state"
)

func TestKeysLeadEverywhere(t *testing.T) {
	t.Parallel()
	b := newBench(t, 80, 24)
	for _, step := range []struct {
		keys  []string
		shows string
	}{
		{[]string{"down", "enter"}, "Queues › mail › pending"},
		{[]string{"right", "right", "right"}, "Queues › mail › retry"},
		{[]string{"enter"}, "Queues › mail › task r-00"},
		{[]string{"esc"}, "Queues › mail › retry"},
		{[]string{"left"}, "Queues › mail › scheduled"},
		{[]string{"esc", "w"}, "mail › Workers"},
		{[]string{"enter"}, "Workers › web-7.example.com 4711"},
		{[]string{"enter"}, "task a-1"},
		{[]string{"esc", "esc", "esc", "f"}, "mail › Functions"},
		{[]string{"enter"}, "Queues › mail › retry  filter: func:example.com/app/mail.Welcome"},
		{[]string{"tab"}, "2 workers"},
		{[]string{"shift+tab"}, "3 queues"},
		{[]string{"3"}, "3 functions"},
		{[]string{"?"}, "the next screen, or that one"},
		{[]string{"esc"}, "3 functions"},
		{[]string{"t"}, "in the last 1h"},
	} {
		b.keys(step.keys...)
		b.shows(step.shows)
	}
	b.keys("esc", "esc", "backspace") // there is nowhere to go back to
	b.shows("3 functions")
	if _, cmd := b.m.Update(tea.KeyPressMsg{Code: 'q', Text: "q"}); cmd == nil || cmd() != tea.Quit() {
		t.Error("q does not quit")
	}
}

func TestSortAndFilter(t *testing.T) {
	t.Parallel()
	b := newBench(t, 120, 24)
	order := func() string {
		var names []string
		for line := range strings.SplitSeq(b.screen(), "\n") {
			for _, name := range []string{"billing", "mail", "reports"} {
				if len(line) > 2 && strings.HasPrefix(line[2:], name+" ") {
					names = append(names, name)
				}
			}
		}
		return strings.Join(names, " ")
	}
	for _, step := range []struct{ keys, want string }{
		{"", "billing mail reports"},
		{"s", "billing mail reports"}, // by pending
		{"S", "reports mail billing"},
		{"s", "mail billing reports"}, // by active
		{"/", "mail billing reports"},
		{"I", "mail billing"}, // in any case of letters, while it is written
		{"L", "mail billing"},
		{"L", "billing"},
	} {
		b.keys(step.keys)
		if got := order(); got != step.want {
			t.Errorf("after %q there are %s, expected %s:\n%s", step.keys, got, step.want, b.screen())
		}
	}
	b.keys("enter")
	b.shows("filter: ILL")
	b.keys("esc")
	b.hides("filter:")
	if got := order(); got != "mail billing reports" {
		t.Errorf("without the filter there are %s", got)
	}
	b.keys("/zzz", "enter")
	b.shows("Nothing matches the filter")
	b.keys("enter", "p", "down", "space") // on an empty list they do nothing
	b.shows("Nothing matches the filter")
}

// TestSelectionStays refreshes a list whose order has changed.
func TestSelectionStays(t *testing.T) {
	t.Parallel()
	b := newBench(t, 80, 24)
	b.keys("s", "down") // by pending tasks: billing, mail, reports
	b.src.queues[1].Pending = 1000
	b.keys("ctrl+r")
	if line := b.line("> "); !strings.HasPrefix(line, "> mail") {
		t.Errorf("selected is %q, expected mail:\n%s", line, b.screen())
	}
	b.src.queues = b.src.queues[:1]
	b.keys("ctrl+r")
	if line := b.line("> "); !strings.HasPrefix(line, "> billing") {
		t.Errorf("selected is %q, expected what is left:\n%s", line, b.screen())
	}
}

func TestPages(t *testing.T) {
	t.Parallel()
	b := newBench(t, 80, 16) // ten tasks on a page
	b.keys("down", "enter", "right", "right", "right")
	for _, step := range []struct{ key, shows, hides string }{
		{"", "1-10 of 60", "r-10"},
		{"pgdown", "11-20 of 60", "r-20"},
		{"up", "1-10 of 60", "r-10"}, // from the first line to the page before
		{"pgup", "1-10 of 60", "r-10"},
		{"end", "> mail", ""},
		{"down", "11-20 of 60", "r-20"}, // from the last line to the next page
		{"pgdown", "21-30 of 60", ""},
		{"home", "1-10 of 60", ""},
		{"o", "newest first", ""},
	} {
		b.keys(step.key)
		b.shows(step.shows)
		if step.hides != "" {
			b.hides(step.hides)
		}
	}
	b.keys("o", "pgdown", "pgdown", "pgdown", "pgdown", "pgdown")
	b.shows("51-60 of 60")
	b.keys("pgdown")
	b.shows("51-60 of 60")
	b.send(tea.WindowSizeMsg{Width: 80, Height: 24})
	b.src.tasks = b.src.tasks[:30] // the last pages become empty
	for range 5 {
		b.keys("ctrl+r")
	}
	b.shows("21-25 of 60", "r-20")
}

func TestTaskFilter(t *testing.T) {
	t.Parallel()
	b := newBench(t, 80, 24)
	b.keys("down", "enter", "right", "right", "right", "/", "older:soon", "enter")
	b.shows("expected a duration")
	b.keys("ctrl+u", "id:r-0 xx", "ctrl+w", "enter")
	b.shows("filter: id:r-0", "10 match among 60 of 60", "r-09")
	b.hides("r-10")
	b.keys("esc")
	b.shows("1-18 of 60")
}

func TestActions(t *testing.T) {
	t.Parallel()
	retry := []string{"down", "enter", "right", "right", "right"}
	for name, c := range map[string]struct {
		keys []string
		want string // what is done; "": nothing
		says string
	}{
		"run now":        {[]string{"r", "y"}, "Do mail run r-00", "run 1 task"},
		"archive":        {[]string{"a", "y"}, "Do mail archive r-00", "archived 1 task"},
		"delete marked":  {[]string{"space", "down", "space", "d", "y"}, "Do mail delete r-00,r-02", "deleted 2 tasks"},
		"cancel":         {[]string{"enter", "c", "y"}, "Do mail cancel r-00", "canceled 1 task"},
		"move":           {[]string{"m", "bi", "tab", "enter", "y"}, "Do mail move to billing r-00", "moved 1 task"},
		"no":             {[]string{"d", "n"}, "", "nothing was done"},
		"enter is no":    {[]string{"d", "enter"}, "", "nothing was done"},
		"esc":            {[]string{"d", "esc"}, "", "nothing was done"},
		"another key":    {[]string{"d", "d"}, "", "[y] yes"},
		"unmarked":       {[]string{"space", "up", "space", "d"}, "", "Delete 1 retry task"},
		"unmarked twice": {[]string{"space", "esc", "r", "y"}, "Do mail run r-01", ""},
		"move nowhere":   {[]string{"m", "enter"}, "", "expected the name of another queue"},
		"move to itself": {[]string{"m", "mail", "enter"}, "", "expected the name of another queue"},
		"wrong state":    {[]string{"left", "left", "a"}, "", "cannot archive: expected a task that is pending"},
		"all":            {[]string{"*", "r", "y"}, "DoAll mail run retry ", "run 40 tasks"},
		"all but no":     {[]string{"*", "r", "n"}, "", "nothing was done"},
		"all, filtered": {
			[]string{"/func:Welcome", "enter", "*", "d", "y"}, "DoAll mail delete retry Welcome", "deleted 40 tasks",
		},
		"no id":      {[]string{"left", "left", "left", "end", "d"}, "", "carries no id"},
		"mark no id": {[]string{"left", "left", "left", "end", "space"}, "", "carries no id"},
		"pause":      {[]string{"p", "y"}, "pause mail", "paused queue mail"},
		"pause not":  {[]string{"p", "n"}, "", "nothing was done"},
		"resume":     {[]string{"esc", "down", "p", "y"}, "resume reports", "resumed queue reports"},
		"stop":       {[]string{"2", "x", "y"}, "order stop " + newFake().work[0].ID, "stopping the worker on web-7"},
		"stop not":   {[]string{"2", "x", "n"}, "", "nothing was done"},
		"cancel one": {[]string{"2", "enter", "c", "y"}, "Do mail cancel a-1", "canceled 1 task"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t, 80, 24)
			b.keys(retry...)
			b.src.asked()
			b.keys(c.keys...)
			var did []string
			for call := range strings.SplitSeq(b.src.asked(), "; ") {
				word, _, _ := strings.Cut(call, " ")
				if slices.Contains([]string{"Do", "DoAll", "pause", "resume", "order"}, word) {
					did = append(did, call)
				}
			}
			if got := strings.Join(did, "; "); got != c.want {
				t.Errorf("done was %q, expected %q:\n%s", got, c.want, b.screen())
			}
			if c.says != "" {
				b.shows(c.says)
			}
		})
	}
}

// TestBulkAction watches an action on a whole list, and stops it.
func TestBulkAction(t *testing.T) {
	t.Parallel()
	b := newBench(t, 80, 24)
	b.keys("down", "enter", "right", "right", "right")
	b.src.more = make(chan bool)
	b.keys("*", "r")
	b.shows("Run now all 60 retry tasks of queue mail?")
	b.keys("y")
	b.src.more <- true
	b.until("progress is shown", func() bool { return strings.Contains(b.screen(), "10 of 60, run 10; Esc stops it") })
	if len(b.waits) == 0 {
		t.Error("nothing will show further progress")
	}
	b.keys("d")
	b.until("a second action is refused", func() bool { return b.m.note.Text != "" })
	b.keys("esc")
	close(b.src.more)
	b.until("it has stopped", func() bool { return b.m.job == nil })
	b.shows("run 20 tasks")
}

func TestRedisGoesAway(t *testing.T) {
	t.Parallel()
	for name := range screens {
		if name == "events" {
			continue // it is told of errors by Watch
		}
		b := at(t, name, 80, 24, false, true)
		b.keys("esc")
		shown := b.screen()
		b.src.fail(errors.New("delayed: dial tcp: connection refused"))
		b.m.now = func() time.Time { return noon.Add(7 * time.Second) }
		b.waits = nil
		b.keys("ctrl+r")
		b.shows("Redis does not answer; this is from 7s ago: dial tcp: connection refused")
		if _, last, _ := strings.Cut(shown, "\n"); len(b.waits) != 1 || b.waits[0] != DefaultInterval || last == "" {
			t.Errorf("%s: looks again after %v", name, b.waits)
		}
		lines, was := strings.Split(b.screen(), "\n"), strings.Split(shown, "\n")
		if len(lines) < 10 || strings.Join(lines[3:8], "\n") != strings.Join(was[3:8], "\n") {
			t.Errorf("%s: what was known is gone:\n%s", name, b.screen())
		}
		b.src.fail(nil)
		b.keys("ctrl+r")
		b.hides("Redis does not answer")
	}
}

// TestWhatIsRead holds what each screen asks Redis for: what it shows and nothing else.
func TestWhatIsRead(t *testing.T) {
	t.Parallel()
	b := newBench(t, 80, 24)
	for _, step := range []struct {
		keys []string
		want string
	}{
		{[]string{"ctrl+r"}, "Queues; flows 2m billing mail reports; diagnose"},
		{[]string{"t"}, "Queues; flows 1h billing mail reports; diagnose"},
		{[]string{"/mai"}, ""}, // what is known is filtered
		{[]string{"enter", "ctrl+r"}, "Queues; flows 1h mail; diagnose"},
		{[]string{"enter"}, "Queue mail; Tasks mail pending "},
		{[]string{"enter"}, "Task mail p-0"},
		{[]string{"up", "down", "?", "esc"}, ""},
		{[]string{"2"}, "Workers"},
		{[]string{"enter"}, "Workers mail; Tasks mail active "},
		{[]string{"3"}, "Names; flows 1h billing mail reports"},
	} {
		b.keys(step.keys...)
		b.asked(step.want)
	}
	b.keys("4")
	b.until("events are shown", func() bool { return strings.Contains(b.screen(), "worker paused") })
	b.asked("Watch")
	b.keys("ctrl+r")
	b.asked("")
	b.keys("2")
	b.until("nobody watches any more", func() bool { return b.hasAsked("Watch ends") })
}

// TestSlowRedis leaves a Redis alone that takes long to answer.
func TestSlowRedis(t *testing.T) {
	t.Parallel()
	b := newBench(t, 80, 24)
	wait := func(took time.Duration) time.Duration {
		b.waits = nil
		b.send(fetchedMsg{seq: b.m.fetch.seq, show: func() {}, took: took})
		if len(b.waits) != 1 {
			t.Fatalf("it waits %v, expected once", b.waits)
		}
		return b.waits[0]
	}
	if got := wait(time.Millisecond); got != DefaultInterval {
		t.Errorf("after a millisecond it waits %v", got)
	}
	if got := wait(3 * time.Second); got < 4*3*time.Second {
		t.Errorf("after 3 s it waits %v", got)
	}
	b = newBench(t, 80, 24)
	b.keys("down", "enter") // large messages take many calls
	if left := time.Until(b.src.limit); left < 30*time.Second {
		t.Errorf("tasks are to be read within %v", left)
	}
	b.keys("enter") // a pending task is looked for among all others
	if got := wait(time.Second); got < 20*time.Second {
		t.Errorf("after a second for a task it waits %v", got)
	}
	b.waits = nil
	b.send(fetchedMsg{seq: b.m.fetch.seq - 1})
	b.send(refreshMsg{seq: b.m.fetch.seq - 1})
	if len(b.waits) != 0 {
		t.Error("what came too late leads to a second row of refreshes")
	}
}

// TestNotReadYet does not call a list empty before Redis has told what is in it.
func TestNotReadYet(t *testing.T) {
	t.Parallel()
	b := newBench(t, 80, 24)
	b.keys("down", "enter") // the tasks of a queue
	b.src.fail(errors.New("delayed: dial tcp: connection refused"))
	for _, key := range []string{"right", "5", "4"} { // another state, periodic entries, events
		b.keys(key)
		b.hides("No such tasks")
		b.hides("no tasks")
		b.hides("No periodic entries")
		if key == "4" {
			b.shows("Waiting for something to happen")
		} else {
			b.shows("reading…")
		}
	}
}

func TestEventsAreHeldAndBounded(t *testing.T) {
	t.Parallel()
	b := at(t, "events", 80, 24, false, true)
	s, _ := b.m.current().screen.(*eventsScreen)
	more := func(n int) {
		msg := eventsMsg{to: s, from: s.stream, events: make([]inspect.Event, n), ended: true}
		b.m.update(msg)
	}
	b.keys("space")
	more(3)
	b.shows("held: 3 wait", "5 events"[1:])
	b.keys("space")
	b.shows("8 events", "following")
	more(3 * mostEvents)
	if n := len(s.items); n != mostEvents {
		t.Errorf("the log has %d events, expected %d", n, mostEvents)
	}
	b.keys("up")
	b.shows("End follows")
	st := &stream{watched: make(chan watched, mostEvents)} // nobody listens to it
	for range 3 * mostEvents {
		st.add(watched{})
	}
	if len(st.watched) != mostEvents || st.dropped.Load() != 2*mostEvents {
		t.Errorf("%d events wait, %d were dropped", len(st.watched), st.dropped.Load())
	}
}

// TestEventsWithoutRedis is told that Redis is away, and then of nothing more.
func TestEventsWithoutRedis(t *testing.T) {
	t.Parallel()
	b := at(t, "events", 80, 24, false, true)
	s, _ := b.m.current().screen.(*eventsScreen)
	away := func() {
		b.m.update(eventsMsg{to: s, from: s.stream, err: errors.New("connection refused"), ended: true})
	}
	away()
	first := s.heard
	away()
	b.shows("Redis does not answer", "connection refused")
	b.send(calmMsg{s, s.stream, first})
	b.shows("Redis does not answer") // a second error has come since
	b.send(calmMsg{s, s.stream, s.heard})
	b.hides("Redis does not answer")
}

func TestFindTask(t *testing.T) {
	t.Parallel()
	b := newBench(t, 80, 24)
	b.keys("i", "enter")
	b.shows("expected the id of a task")
	b.keys("r-07", "enter")
	b.shows("Queues › mail › task r-07")
	b.keys("esc")
	b.shows("3 queues")
	b.keys("inowhere", "enter")
	b.shows("task nowhere: not found")
	b.src.tasks = append(b.src.tasks, inspect.Task{ID: "r-07", Queue: "billing"})
	b.keys("2", "ir-07", "enter")
	b.shows("task r-07", "another task with this id is in queue billing")
	b.keys("esc")
	b.shows("2 workers")
	here := b.m.here()
	b.keys("1") // one goes elsewhere meanwhile
	b.m.found("r-07", b.src.tasks, nil, here())
	b.shows("3 queues")
}

func TestTaskThatIsGone(t *testing.T) {
	t.Parallel()
	b := newBench(t, 80, 24)
	b.keys("down", "enter", "enter")
	b.shows("task p-0")
	b.src.tasks = nil
	b.keys("ctrl+r")
	b.shows("The task is gone", `mail.Welcome(1, "en")`)
	b.keys("d")
	b.shows("cannot delete")
}

func TestParseFilter(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]inspect.Filter{
		"":                        {},
		`42, "en"`:                {Text: `42, "en"`},
		"func:Welcome id:r-0":     {Function: "Welcome", ID: "r-0"},
		`error:"mailbox full" 42`: {Error: "mailbox full", Text: "42"},
		"older:7d newer:90m":      {OlderThan: 7 * 24 * time.Hour, YoungerThan: 90 * time.Minute},
		"arg:0=42 reason:failed":  {Arg: "0=42", Reason: "failed"},
		"worker:w attempt:3":      {Worker: "w", MinAttempt: 3},
		"deaths:2":                {MinDeaths: 2},
		`group:"a b"`:             {Group: "a b"},
		"a:b":                     {Text: "a:b"},
	} {
		f, err := parseFilter(text)
		task := inspect.Task{State: state.Retry}
		if err != nil || f.Text != want.Text || f.Function != want.Function || f.ID != want.ID ||
			f.Error != want.Error || f.OlderThan != want.OlderThan || f.YoungerThan != want.YoungerThan ||
			f.Arg != want.Arg || f.Reason != want.Reason || f.Worker != want.Worker ||
			f.Group != want.Group || f.MinAttempt != want.MinAttempt || f.MinDeaths != want.MinDeaths ||
			f.Match(&task, noon) != want.Match(&task, noon) {
			t.Errorf("%q means %+v (%v), expected %+v", text, f, err, want)
		}
	}
	if f, err := parseFilter("header:tenant=acme header:x"); err != nil || len(f.Headers) != 2 ||
		f.Headers["tenant"] != "acme" {
		t.Errorf("headers are %v (%v)", f.Headers, err)
	}
	for _, text := range []string{
		"id:", "older:x", "newer:-1h", "attempt:x", "attempt:0", "deaths:x", "deaths:0", `error:"x`, "func: x",
	} {
		if f, err := parseFilter(text); err == nil {
			t.Errorf("%q means %+v, expected an error", text, f)
		}
	}
}
