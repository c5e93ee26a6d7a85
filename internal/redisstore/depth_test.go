package redisstore

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"

	"github.com/godelayed/delayed/internal/redistest"
)

// depthTime is 2025-01-02 00:00:10: the second ten seconds of a day, which is the 21st of its field.
var depthTime = time.Date(2025, 1, 2, 0, 0, 10, 9e8, time.UTC)

// noteDepths notes the depth of the queue and, if two, of another one in its slot.
func noteDepths(at time.Time, two bool) func(s *Store) (any, error) {
	return func(s *Store) (any, error) {
		stores := []*Store{s}
		if two {
			stores = append(stores, NewStore(s.Src, "", s.keys.list+".other"))
		}
		return NoteDepths(bg, s.Src, stores, at)
	}
}

// depths is the value of a depths hash.
func depths(h redistest.Hash) redistest.Expiring {
	return redistest.Expiring{Value: h, For: 90 * 24 * time.Hour}
}

// On that day the fields have the numbers 1928640, 241080 and 446. The depths before are gaps.
var (
	secondsBefore = "1928640:-,"
	daysBefore    = "446:" + strings.Repeat("-,", 20)
)

var depthCases = storeTable{script: "depth", refused: true, cases: []storeCase{
	{
		name: "the first", seed: queued("a b c", 3), do: noteDepths(depthTime, false), result: []int64{3},
		want: with(queued("a b c", 3), redistest.State{"_depths": depths(redistest.Hash{
			"s0": secondsBefore + "3", "m8": "241080:3", "d2": daysBefore + "3",
		})}),
	},
	{
		name: "nothing is pending", do: noteDepths(depthTime, false), result: []int64{0},
		want: redistest.State{"_depths": depths(redistest.Hash{
			"s0": secondsBefore, "m8": "241080:", "d2": daysBefore,
		})},
	},
	{
		name: "suspects are pending, gaps are not",
		seed: redistest.State{
			"": redistest.List{"a", "-", "b"}, "_noti": ones(3), "_suspects": redistest.List{"c", "d"},
			"_suspects_noti": ones(2), "_control": redistest.Hash{"gaps": "1"},
		},
		do: noteDepths(depthTime, false), result: []int64{4},
		want: redistest.State{
			"": redistest.List{"a", "-", "b"}, "_noti": ones(3), "_suspects": redistest.List{"c", "d"},
			"_suspects_noti": ones(2), "_control": redistest.Hash{"gaps": "1"},
			"_depths": depths(redistest.Hash{"s0": secondsBefore + "4", "m8": "241080:4", "d2": daysBefore + "4"}),
		},
	},
	{
		name: "somebody has noted it for these ten seconds",
		seed: with(queued("a b c", 3), redistest.State{"_depths": depths(redistest.Hash{"s0": secondsBefore})}),
		do:   noteDepths(depthTime, false), result: []int64{-1}, idle: true,
	},
	{
		name: "somebody has noted it for later ones",
		seed: with(queued("a b c", 3), redistest.State{"_depths": depths(redistest.Hash{
			"s0": secondsBefore + "9,,,9",
		})}),
		do: noteDepths(depthTime, false), result: []int64{-1}, idle: true,
	},
	{
		name: "the peak of the minute, not that of the day",
		seed: with(queued("a b c", 3), redistest.State{"_depths": redistest.Expiring{
			Value: redistest.Hash{"s0": "1928640:2", "m8": "241080:2", "d2": daysBefore + "10"}, For: time.Hour,
		}}),
		do: noteDepths(depthTime, false), result: []int64{3},
		want: with(queued("a b c", 3), redistest.State{"_depths": depths(redistest.Hash{
			"s0": "1928640:2,3", "m8": "241080:3", "d2": daysBefore + "10",
		})}),
	},
	{
		name: "less than the peak",
		seed: with(queued("a b c", 3), redistest.State{"_depths": redistest.Expiring{
			Value: redistest.Hash{"s0": "1928640:", "m8": "241080:4", "d2": daysBefore + "5"}, For: time.Hour,
		}}),
		do: noteDepths(depthTime, false), result: []int64{3},
		want: with(queued("a b c", 3), redistest.State{"_depths": redistest.Expiring{
			Value: redistest.Hash{"s0": "1928640:,3", "m8": "241080:4", "d2": daysBefore + "5"}, For: time.Hour,
		}}),
	},
	{
		name: "gaps, and what is older than a round",
		seed: with(queued("a b c", 3), redistest.State{"_depths": depths(redistest.Hash{
			"s0": "1928640:1", "m8": "241067:" + strings.Repeat("7,", 119) + "7", "d2": "446:1,2", "s4": "x",
		})}),
		do: noteDepths(depthTime.Add(7*time.Minute), false), result: []int64{3},
		want: with(queued("a b c", 3), redistest.State{"_depths": depths(redistest.Hash{
			"s0": "1928640:1" + strings.Repeat(",-", 42) + ",3", "m8": "241080:" + strings.Repeat("-,", 7) + "3",
			"d2": "446:1,2" + strings.Repeat(",-", 18) + ",3", "s4": "x",
		})}),
	},
	{
		name: "in place of what is no depth", seed: redistest.State{"_depths": depths(redistest.Hash{
			"s0": "x", "m8": "241080:1,y,-", "d2": "446",
		})},
		do: noteDepths(depthTime, false), result: []int64{0},
		want: redistest.State{"_depths": depths(redistest.Hash{
			"s0": secondsBefore, "m8": "241080:1,y,-", "d2": daysBefore,
		})},
	},
	{
		name: "of two queues", seed: queued("a b c", 3), do: noteDepths(depthTime, true), result: []int64{3, 0},
		want: with(queued("a b c", 3), redistest.State{"_depths": depths(redistest.Hash{
			"s0": secondsBefore + "3", "m8": "241080:3", "d2": daysBefore + "3",
		})}),
	},
}}

// TestDepthsAreBounded notes a depth every day for a year, then more and more often, and measures what Redis keeps of
// them.
func TestDepthsAreBounded(t *testing.T) {
	t.Parallel()
	b := redistest.NewBench(t, redistest.Shared(t))
	s := NewStore(dialled(t, b.Server.URL()), "", b.Name)
	at := depthTime
	note := func(n int, every time.Duration) {
		t.Helper()
		for range n {
			if noted, err := NoteDepths(bg, s.Src, []*Store{s}, at); err != nil || noted[0] < 0 {
				t.Fatalf("%v: noted: %v, %v", at, noted, err)
			}
			at = at.Add(every)
		}
	}
	measure := func(most int) {
		t.Helper()
		fields, err := redis.Int(b.Do("HLEN", b.Name+"_depths"), nil)
		b.Must(err)
		bytes, err := redis.Int(b.Do("MEMORY", "USAGE", b.Name+"_depths", "SAMPLES", 0), nil)
		b.Must(err)
		t.Logf("%d bytes in %d fields", bytes, fields)
		if fields != 5+13+3 || bytes > most {
			t.Errorf("%d bytes in %d fields, expected at most %d in 21", bytes, fields, most)
		}
	}
	fill := func() {
		t.Helper()
		note(365, 24*time.Hour)
		note(27*60, time.Minute)
		note(500, DepthStep)
	}
	fill()
	measure(6 << 10)
	for range 10 {
		b.Do("RPUSH", append([]any{b.Name}, slices.Repeat([]any{"m"}, 1000)...)...)
		b.Do("RPUSH", append([]any{b.Name + "_noti"}, slices.Repeat([]any{"1"}, 1000)...)...)
	}
	fill()
	measure(18 << 10)
	for g, most := range map[Grain]int{GrainSecond: 450, GrainMinute: 13 * 120, GrainDay: 3 * 45} {
		kept, err := s.Depths(bg, g)
		b.Must(err)
		slices.SortFunc(kept, func(a, b Depth) int { return a.At.Compare(b.At) })
		step := depthRings[g].step
		if len(kept) > most || len(kept) <= most-int(depthRings[g].steps) {
			t.Errorf("grain %d: %d depths, expected about %d", g, len(kept), most)
		}
		for i, d := range kept {
			want := at.Add(-DepthStep).Truncate(step).Add(-time.Duration(len(kept)-1-i) * step)
			if d.Pending != 10_000 || !d.At.Equal(want) {
				t.Fatalf("grain %d: depth %d of %d is %+v, expected 10000 at %v", g, i, len(kept), d, want)
			}
		}
	}
}

// noteLater notes depths that follow each other in one minute.
func noteLater() func(s *Store) (any, error) {
	at := depthTime
	return func(s *Store) (any, error) {
		at = at.Add(DepthStep)
		return NoteDepths(bg, s.Src, []*Store{s}, at)
	}
}

// Each queue has its own depths, however many one worker notes.
func TestDepthsOfManyQueues(t *testing.T) {
	t.Parallel()
	b := redistest.NewBench(t, redistest.Shared(t))
	src := dialled(t, b.Server.URL())
	var stores []*Store
	for i := range depthQueues + 10 {
		s := NewStore(src, "", fmt.Sprint(b.Name, "_", i))
		stores = append(stores, s)
		if i > 0 {
			b.Must(s.Enqueue(bg, envelopes(i)))
		}
	}
	for again := range 2 {
		noted, err := NoteDepths(bg, src, stores, depthTime)
		b.Must(err)
		for i, n := range noted {
			if again == 0 && n != int64(i) || again == 1 && n != -1 {
				t.Errorf("queue %d, time %d: noted %d", i, again, n)
			}
		}
	}
	for i, s := range stores {
		kept, err := s.Depths(bg, GrainSecond)
		b.Must(err)
		if want := []Depth{{depthTime.Truncate(DepthStep), i}}; !slices.Equal(kept, want) {
			t.Errorf("queue %d: %v, expected %v", i, kept, want)
		}
	}
}

// A key of another type keeps no other queue's depth from being noted.
func TestDepthsBesideAKeyOfAnotherType(t *testing.T) {
	t.Parallel()
	b := redistest.NewBench(t, redistest.Shared(t))
	src := dialled(t, b.Server.URL())
	var stores []*Store
	for i := range 3 {
		stores = append(stores, NewStore(src, "", fmt.Sprint(b.Name, "_", i)))
	}
	b.Must(stores[2].Enqueue(bg, envelopes(2)))
	b.Do("SET", b.Name+"_1", "of another program")
	noted, err := NoteDepths(bg, src, stores, depthTime)
	if want := []int64{0, -1, 2}; !slices.Equal(noted, want) || !IsWrongType(err) {
		t.Errorf("noted %v, %v, expected %v and that a key is of another type", noted, err, want)
	}
	b.Do("DEL", b.Name+"_1")
}
