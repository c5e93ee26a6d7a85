package redisstore

import (
	"fmt"
	"testing"

	"github.com/godelayed/delayed/internal/redistest"
	"github.com/godelayed/delayed/internal/wire"
)

// lookFor looks for a task and returns what it found: its state, its time in ms and the texts.
func lookFor(id string, message bool) func(s *Store) (any, error) {
	return func(s *Store) (any, error) {
		found, err := s.Look(bg, id, message)
		if err != nil {
			return nil, err
		}
		state, due, info := found.Place()
		ms := due.UnixMilli()
		if due.IsZero() {
			ms = 0
		}
		if size := found.Message.Size; size > 0 {
			return fmt.Sprintf("%s %d %q of %d bytes", state, ms, info, size), nil
		}
		return fmt.Sprintf("%s %d %q %q", state, ms, info, found.Message.Bytes), nil
	}
}

var lookCases = storeTable{script: "look", cases: []storeCase{
	{name: "nothing", do: lookFor("x", true), result: `unknown 0 "" ""`},
	{
		name: "pending, and another one is filed",
		seed: with(filedAs("_scheduled", redistest.Zset{"y": later}),
			redistest.State{"": redistest.List{"m"}, "_noti": ones(1)}),
		do:     lookFor("x", true),
		result: `unknown 0 "" ""`,
	},
	{
		name: "scheduled", seed: filedAs("_scheduled", redistest.Zset{"x": later}), do: lookFor("x", true),
		result: `scheduled 4000000000001 "i x" "m x"`,
	},
	{
		name: "without its message", seed: filedAs("_retry", redistest.Zset{"x": round}), do: lookFor("x", false),
		result: `retry 4000000000000 "i x" ""`,
	},
	{
		name: "retry", seed: filedAs("_retry", redistest.Zset{"x": past, "y": later}), do: lookFor("x", true),
		result: `retry 1000 "i x" "m x"`,
	},
	{
		name: "too large to be read", seed: redistest.State{
			"_archived": redistest.Zset{"x": later},
			"_tasks":    redistest.Hash{"x": big("m", wire.WorkerLimits.Bytes+1)},
		},
		do: lookFor("x", true), result: `archived 4000000000001 "" of 1052673 bytes`,
	},
	{
		name: "more is known of it, or kept, than anybody writes",
		seed: redistest.State{
			"_archived": redistest.Zset{"x": later}, "_tasks": redistest.Hash{"x": "m x"},
			"_info":    redistest.Hash{"x": big("i", wire.InfoLimits.Bytes+1)},
			"_results": redistest.Hash{"x": big("r", wire.InfoLimits.Bytes+1)},
		},
		do: lookFor("x", true), result: `archived 4000000000001 "" "m x"`,
	},
	{
		name: "parked", seed: filedAs("_parked", redistest.Zset{"x": later}), do: lookFor("x", true),
		result: `parked 4000000000001 "i x" "m x"`,
	},
	{
		name: "archived", seed: filedAs("_archived", redistest.Zset{"x": later}), do: lookFor("x", true),
		result: `archived 4000000000001 "i x" "m x"`,
	},
	{
		name:   "completed",
		seed:   redistest.State{"_completed": redistest.Zset{"x": round}, "_results": redistest.Hash{"x": "r x"}},
		do:     lookFor("x", true),
		result: `completed 4000000000000 "r x" ""`,
	},
	{
		name:   "completed, but over",
		seed:   redistest.State{"_completed": redistest.Zset{"x": past}, "_results": redistest.Hash{"x": "r x"}},
		do:     lookFor("x", true),
		result: `unknown 0 "" ""`,
	},
	{
		name:   "has reported",
		seed:   redistest.State{"_results": redistest.Hash{"x": "50 %"}},
		do:     lookFor("x", true),
		result: `active 0 "50 %" ""`,
	},
	{
		name: "completed, and filed again",
		seed: with(filedAs("_retry", redistest.Zset{"x": later}), redistest.State{
			"_completed": redistest.Zset{"x": later}, "_results": redistest.Hash{"x": "r x"},
		}),
		do:     lookFor("x", false),
		result: `retry 4000000000001 "i x" ""`,
	},
}}

func TestScoresOfServers(t *testing.T) {
	for _, c := range []struct {
		score string
		want  int64
	}{
		{"4e+12", 4e12},
		{"1735776000123", 1735776000123},
		{"1.7357760001235e+12", 1735776000123},
		{"x", -1},
	} {
		got, err := ScoreTime(c.score)
		if (err != nil) != (c.want < 0) || err == nil && got.UnixMilli() != c.want {
			t.Errorf("%v became %v, %v", c.score, got, err)
		}
	}
	if got, err := ScoreTime(""); err != nil || !got.IsZero() {
		t.Errorf("no score became %v, %v", got, err)
	}
}
