package redisstore

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/godelayed/delayed/internal/redistest"
	"github.com/godelayed/delayed/internal/schedule"
)

// agendaOf reads which entries are due, after skipping some.
func agendaOf(skip int) func(s *Store) (any, error) {
	return func(s *Store) (any, error) {
		a, err := s.Agenda(bg, skip)
		var text strings.Builder
		for _, e := range a.Entries {
			fmt.Fprintf(&text, "%s=%s ", e.Name, e.Raw)
		}
		// The time until the next one is as exact as the clocks of two machines.
		return fmt.Sprintf("%snext %v", text.String(), a.Next >= 0), err
	}
}

var agendaCases = storeTable{script: "agenda", cases: []storeCase{
	{name: "no entries", do: agendaOf(0), result: "next false"},
	{
		name:   "none is due",
		seed:   redistest.State{"_periodic": redistest.Hash{"a": "A"}, "_ticks": redistest.Zset{"a": later}},
		do:     agendaOf(0),
		result: "next true",
	},
	{
		name:   "a round time",
		seed:   redistest.State{"_periodic": redistest.Hash{"a": "A"}, "_ticks": redistest.Zset{"a": round}},
		do:     agendaOf(0),
		result: "next true",
	},
	{
		name: "due ones in their order, one of which does not exist",
		seed: redistest.State{
			"_periodic": redistest.Hash{"a": "A", "b": "B", "z": "Z"},
			"_ticks":    redistest.Zset{"a": past, "b": past - 1, "c": past + 1, "z": later},
		},
		do:     agendaOf(0),
		result: "b=B a=A c= next true",
	},
	{
		name: "without the first",
		seed: redistest.State{
			"_periodic": redistest.Hash{"a": "A", "b": "B"},
			"_ticks":    redistest.Zset{"a": past, "b": past - 1},
		},
		do:     agendaOf(1),
		result: "a=A next false",
	},
	{
		name:   "without all",
		seed:   redistest.State{"_periodic": redistest.Hash{"a": "A"}, "_ticks": redistest.Zset{"a": past}},
		do:     agendaOf(1),
		result: "next false",
	},
}}

// setE writes or removes entry e.
func setE(was, raw string, due time.Time) func(s *Store) (any, error) {
	return func(s *Store) (any, error) {
		return nil, s.SetEntry(bg, schedule.EntryValue{Name: "e", Raw: []byte(was)}, []byte(raw), due)
	}
}

// entryE is the state of a queue with entry e, and another one.
func entryE(changes redistest.State) redistest.State {
	return with(redistest.State{
		"_periodic":  redistest.Hash{"e": "old", "f": "F"},
		"_ticks":     redistest.Zset{"e": past, "f": later},
		"_history:e": redistest.List{"line 1", "line 2"},
	}, changes)
}

var (
	onlyF = redistest.State{
		"_periodic": redistest.Hash{"f": "F"}, "_ticks": redistest.Zset{"f": later},
		"_history:e": nil,
	}
	laterTime  = time.UnixMilli(later)
	changedE   = redistest.Hash{"e": "new", "f": "F"}
	neverE     = redistest.Zset{"f": later}
	laterE     = redistest.Zset{"e": later, "f": later}
	historyOfE = "_history:e"
	noTime     time.Time
)

var entryCases = storeTable{script: "entry", cases: []storeCase{
	{
		name: "new", do: setE("", "new", laterTime),
		want: redistest.State{"_periodic": redistest.Hash{"e": "new"}, "_ticks": redistest.Zset{"e": later}},
	},
	{
		name: "new, and paused", do: setE("", "new", noTime),
		want: redistest.State{"_periodic": redistest.Hash{"e": "new"}},
	},
	{
		name: "changed", seed: entryE(nil), do: setE("old", "new", laterTime),
		want: entryE(redistest.State{"_periodic": changedE, "_ticks": laterE}),
	},
	{
		name: "paused", seed: entryE(nil), do: setE("old", "new", noTime),
		want: entryE(redistest.State{"_periodic": changedE, "_ticks": neverE}),
	},
	{name: "removed with its history", seed: entryE(nil), do: setE("old", "", noTime), want: entryE(onlyF)},
	{name: "changed by others", seed: entryE(nil), do: setE("older", "new", laterTime), err: ErrEntryChanged},
	{name: "created by others", seed: entryE(nil), do: setE("", "new", laterTime), err: ErrEntryChanged},
	{name: "removed by others", seed: entryE(onlyF), do: setE("old", "new", laterTime), err: ErrEntryChanged},
	{
		name: "a time without an entry", seed: redistest.State{"_ticks": redistest.Zset{"e": past}},
		do: setE("", "", noTime), want: redistest.State{},
	},
}}

// tickE ticks entry e, which afterwards is "free" and ticks again later, or "held" and never ticks.
func tickE(c schedule.Plan) func(s *Store) (any, error) {
	return func(s *Store) (any, error) {
		c := c
		c.Was = schedule.EntryValue{Name: "e", Raw: []byte("old")}
		if c.Free == nil {
			c.Free, c.Held = []byte("new"), []byte("held")
		}
		c.DueFree = laterTime
		holder, err := s.Tick(bg, &c)
		return holder, err
	}
}

// ticksE are ticks at 1, 2 … ms.
func ticksE(outcomes ...string) (ticks []schedule.Tick) {
	for i := 0; i < len(outcomes); i += 2 {
		n := i/2 + 1
		ticks = append(ticks, schedule.Tick{
			At: time.UnixMilli(int64(n)), ID: fmt.Sprint("e@", n), Message: fmt.Append(nil, "m", n),
			Free: outcomes[i], Held: outcomes[i+1],
		})
	}
	return ticks
}

// heldX is the state of the locks that task x holds.
func heldX(expiry int64) redistest.State {
	return locked(expiry, redistest.Hash{"p:e": "x"})
}

// heldBy is the state of the locks of a task that was enqueued just now.
func heldBy(id string) redistest.State {
	return locked(fromNow(schedule.OverlapLife), redistest.Hash{"p:e": id})
}

var tickCases = storeTable{script: "tick", refused: true, cases: []storeCase{
	{
		name:   "one tick",
		seed:   entryE(redistest.State{historyOfE: nil}),
		do:     tickE(schedule.Plan{Ticks: ticksE("enqueued", "")}),
		result: "",
		want: entryE(redistest.State{
			"": redistest.List{"m1"}, "_noti": ones(1), "_periodic": changedE, "_ticks": laterE,
			historyOfE: redistest.List{"1 now enqueued e@1"},
		}),
	},
	{
		name: "several, behind others, and one that was missed",
		seed: entryE(redistest.State{"": redistest.List{"p"}, "_noti": ones(1)}),
		do: tickE(schedule.Plan{
			Ticks:     ticksE("missed", "missed", "enqueued", "", "enqueued", ""),
			NotBefore: time.UnixMilli(past),
		}),
		result: "",
		want: entryE(redistest.State{
			"": redistest.List{"p", "m2", "m3"}, "_noti": ones(3), "_periodic": changedE, "_ticks": laterE,
			historyOfE: redistest.List{
				"3 now enqueued e@3", "2 now enqueued e@2", "1 now missed e@1", "line 1",
				"line 2",
			},
		}),
	},
	{
		name: "the entry has changed", seed: entryE(redistest.State{"_periodic": changedE}),
		do: tickE(schedule.Plan{Ticks: ticksE("enqueued", "")}), err: ErrEntryChanged,
	},
	{name: "the entry is gone", do: tickE(schedule.Plan{Ticks: ticksE("enqueued", "")}), err: ErrEntryChanged},
	{
		name: "too early", seed: entryE(nil),
		do:  tickE(schedule.Plan{Ticks: ticksE("enqueued", ""), NotBefore: laterTime}),
		err: ErrNotDue,
	},
	{
		name: "the lock is free: the first takes it",
		seed: entryE(redistest.State{historyOfE: nil}),
		do: tickE(schedule.Plan{
			Ticks: ticksE("enqueued", "queued", "queued", "overlap", "overlap", "overlap"),
			Lock:  "p:e",
		}),
		result: "",
		want: entryE(with(heldBy("e@1"), redistest.State{
			"": redistest.List{"m1"}, "_noti": ones(1), "_periodic": changedE, "_ticks": laterE,
			historyOfE: redistest.List{"3 now overlap e@3", "2 now queued e@2", "1 now enqueued e@1"},
		})),
	},
	{
		name:   "the lock is held",
		seed:   entryE(with(heldX(later), redistest.State{historyOfE: nil})),
		do:     tickE(schedule.Plan{Ticks: ticksE("enqueued", "queued", "queued", "overlap"), Lock: "p:e"}),
		result: "x",
		want: entryE(with(heldX(later), redistest.State{
			"_periodic": redistest.Hash{"e": "held", "f": "F"}, "_ticks": neverE,
			historyOfE: redistest.List{"2 now overlap e@2", "1 now queued e@1"},
		})),
	},
	{
		name: "the lock is held, and nothing is to be noted",
		seed: entryE(heldX(later)),
		do: tickE(schedule.Plan{
			Ticks: ticksE("enqueued", ""), Lock: "p:e", Free: []byte("new"), Held: []byte("old"),
		}),
		err: ErrDuplicate,
	},
	{
		name:   "the lock has lapsed",
		seed:   entryE(with(heldX(past), redistest.State{historyOfE: nil})),
		do:     tickE(schedule.Plan{Ticks: ticksE("enqueued", "overlap"), Lock: "p:e"}),
		result: "",
		want: entryE(with(heldBy("e@1"), redistest.State{
			"": redistest.List{"m1"}, "_noti": ones(1), "_periodic": changedE, "_ticks": laterE,
			historyOfE: redistest.List{"1 now enqueued e@1"},
		})),
	},
	{
		name:   "the lock is held by a canceled task",
		seed:   entryE(with(heldX(later), redistest.State{historyOfE: nil, "_revoked": redistest.Zset{"x": later}})),
		do:     tickE(schedule.Plan{Ticks: ticksE("enqueued", "overlap"), Lock: "p:e"}),
		result: "",
		want: entryE(with(heldBy("e@1"), redistest.State{
			"": redistest.List{"m1"}, "_noti": ones(1), "_periodic": changedE, "_ticks": laterE,
			historyOfE: redistest.List{"1 now enqueued e@1"}, "_revoked": redistest.Zset{"x": later},
		})),
	},
	{
		name:   "history has a bound",
		seed:   entryE(redistest.State{historyOfE: longHistory(historyMost)}),
		do:     tickE(schedule.Plan{Ticks: ticksE("enqueued", "")}),
		result: "",
		want: entryE(redistest.State{
			"": redistest.List{"m1"}, "_noti": ones(1), "_periodic": changedE, "_ticks": laterE,
			historyOfE: append(redistest.List{"1 now enqueued e@1"}, longHistory(historyMost-1)...),
		}),
	},
}}

func longHistory(n int) (list redistest.List) {
	for i := range n {
		list = append(list, fmt.Sprint("line ", i))
	}
	return list
}

// TestReadEntries reads more entries than one page holds.
func TestReadEntries(t *testing.T) {
	server := redistest.Shared(t)
	s := NewStore(dialled(t, server.URL()), "", redistest.Name(t))
	if all, err := s.Entries(bg); err != nil || len(all) != 0 {
		t.Errorf("no entries: %v, %v", all, err)
	}
	if e, err := s.Entry(bg, "x"); err != nil || e.Raw != nil {
		t.Errorf("no entry: %v, %v", e, err)
	}
	const n = 2*AgendaPage + 1
	for i := range n {
		if err := s.SetEntry(bg, schedule.EntryValue{Name: fmt.Sprint(i)}, fmt.Append(nil, "v", i),
			time.UnixMilli(past)); err != nil {
			t.Fatal(err)
		}
	}
	all, err := s.Entries(bg)
	if err != nil || len(all) != n {
		t.Errorf("%d entries, %v, expected %d", len(all), err, n)
	}
	for _, e := range all {
		if string(e.Raw) != "v"+e.Name {
			t.Errorf("entry %s is %q", e.Name, e.Raw)
		}
	}
	a, err := s.Agenda(bg, AgendaPage)
	if err != nil || len(a.Entries) != AgendaPage {
		t.Errorf("a page has %d entries, %v", len(a.Entries), err)
	}
	now, err := s.Time(bg)
	if err != nil || now.Before(a.Now) {
		t.Errorf("it is %v, %v, and was %v", now, err, a.Now)
	}
}

// TestHistoryIsBounded: Redis keeps the latest lines of an entry's history and no more.
func TestHistoryIsBounded(t *testing.T) {
	t.Parallel()
	b := redistest.NewBench(t, redistest.Shared(t))
	s := NewStore(dialled(t, b.Server.URL()), "", b.Name)
	const most = 100
	value := schedule.EntryValue{Name: "e", Raw: []byte("v")}
	b.Must(s.SetEntry(bg, schedule.EntryValue{Name: "e"}, value.Raw, time.Time{}))
	for i := range most + 5 {
		_, err := s.Tick(bg, &schedule.Plan{Was: value, Free: value.Raw, Held: value.Raw, Ticks: []schedule.Tick{
			{At: time.UnixMilli(int64(i)), Free: schedule.TickMissed, Held: schedule.TickMissed},
		}})
		b.Must(err)
	}
	lines, err := s.HistoryOf(bg, "e")
	if err != nil || len(lines) != most || b.Size("_history:e") != most ||
		!strings.HasPrefix(lines[0], fmt.Sprint(most+4, " ")) {
		t.Errorf("%d lines, %d of them are read, %v; the first is %q", b.Size("_history:e"), len(lines), err, lines)
	}
	b.Must(s.SetEntry(bg, value, nil, time.Time{}))
	if n := b.Size("_history:e"); n != 0 {
		t.Errorf("%d lines outlive their entry", n)
	}
}
