package redisstore

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/godelayed/delayed/internal/redistest"
)

// beatWith beats for worker w on the queue and, if two, on another one in its slot.
func beatWith(life time.Duration, count, control, two bool) func(s *Store) (any, error) {
	return func(s *Store) (any, error) {
		conn, err := s.Src.Conn(bg, s.keys.list)
		if err != nil {
			return nil, err
		}
		defer conn.Close()
		stores := []*Store{s}
		if two {
			stores = append(stores, NewStore(s.Src, "", s.keys.list+".other"))
		}
		before, err := redistest.TimeOf(conn)
		if err != nil {
			return nil, err
		}
		pulses, at, err := Beat(bg, &Link{conn: conn}, stores, "w", life, count, control)
		if off := at.UnixMilli() - before; err == nil && (off < 0 || off > 10_000) {
			err = fmt.Errorf("beat tells the time %v, which is %d ms off", at, off)
		}
		return pulses, err
	}
}

var beatCases = storeTable{script: "beat", cases: []storeCase{
	{
		name:   "renewed and counted",
		seed:   working(redistest.State{"_worker:w": redistest.Expiring{Value: "v", For: time.Second}}),
		do:     beatWith(2*time.Hour, true, false, false),
		result: []Pulse{{true, 4, -1}},
		want:   working(redistest.State{"_worker:w": redistest.Expiring{Value: "v", For: 2 * time.Hour}}),
	},
	{
		name:   "not counted",
		seed:   working(nil),
		do:     beatWith(time.Hour, false, false, false),
		result: []Pulse{{true, -1, -1}},
	},
	{
		name:   "no claims",
		seed:   queued("a", 1),
		do:     beatWith(time.Hour, true, false, false),
		result: []Pulse{{true, 0, -1}},
	},
	{
		name:   "an expired heartbeat is not brought back",
		seed:   working(redistest.State{"_worker:w": nil}),
		do:     beatWith(time.Hour, true, false, false),
		result: []Pulse{{false, 4, -1}},
	},
	{
		name:   "each queue by itself",
		seed:   working(nil),
		do:     beatWith(time.Hour, true, false, true),
		result: []Pulse{{true, 4, -1}, {false, 0, -1}},
	},
	{
		name: "heartbeats of others stay",
		seed: working(redistest.State{
			"_worker:v": redistest.Expiring{Value: "v", For: 2 * time.Hour},
			"_workers":  redistest.Set{"v", "w"},
		}),
		do:     beatWith(time.Hour, false, false, false),
		result: []Pulse{{true, -1, -1}},
	},
	{
		name:   "version of the control hash",
		seed:   working(redistest.State{"_control": redistest.Hash{"version": "1735689600123", "paused": "1"}}),
		do:     beatWith(time.Hour, false, true, true),
		result: []Pulse{{true, -1, 1735689600123}, {false, -1, 0}},
	},
}}

func registerWith(value string) func(s *Store) (any, error) {
	return func(s *Store) (any, error) {
		tokens, err := s.Register(bg, "w", time.Hour, value)
		slices.Sort(tokens)
		return fmt.Sprint(tokens), err
	}
}

var registerCases = storeTable{script: "register", cases: []storeCase{
	{
		name:   "new",
		do:     registerWith("v"),
		result: "[]",
		want:   redistest.State{"_worker:w": alive, "_workers": redistest.Set{"w"}},
	},
	{
		name:   "again, with claims that stand",
		seed:   working(redistest.State{"_worker:w": nil}),
		do:     registerWith("v"),
		result: "[3-1 3-2 3-3 4-1]",
		want:   working(nil),
	},
	{
		name:   "again, forgotten by a sweeper",
		seed:   redistest.State{"": redistest.List{"a"}, "_noti": ones(1), "_workers": redistest.Set{"v"}},
		do:     registerWith("v"),
		result: "[]",
		want: redistest.State{
			"": redistest.List{"a"}, "_noti": ones(1), "_worker:w": alive,
			"_workers": redistest.Set{"v", "w"},
		},
	},
	{
		name: "while it is known",
		seed: redistest.State{
			"_worker:w": redistest.Expiring{Value: "old", For: time.Second},
			"_workers":  redistest.Set{"w"},
		},
		do:     registerWith("new"),
		result: "[]",
		want: redistest.State{
			"_worker:w": redistest.Expiring{Value: "new", For: time.Hour},
			"_workers":  redistest.Set{"w"},
		},
	},
}}

func unregisterW(s *Store) (any, error) { return s.Unregister(bg, "w") }

func forgetW(s *Store) (any, error) { return s.Forget(bg, "w") }

var forgetCases = storeTable{script: "forget", cases: []storeCase{
	{
		name:   "nothing is left",
		seed:   redistest.State{"_worker:w": alive, "_workers": redistest.Set{"w"}},
		do:     unregisterW,
		result: true,
		want:   redistest.State{},
	},
	{
		name: "orders to the worker go with it",
		seed: with(redistest.State{"_worker:w": alive, "_workers": redistest.Set{"w"}},
			controlled(redistest.Hash{"worker:w": "stop", "worker:v": "pause"})),
		do:     unregisterW,
		result: true,
		want:   controlled(redistest.Hash{"worker:v": "pause"}),
	},
	{
		name: "what it has published goes with it",
		seed: redistest.State{
			"_worker:w": alive, "_workers": redistest.Set{"w"},
			"_functions": redistest.Hash{"w": "f", "w status": "s", "v": "g"},
		},
		do:     unregisterW,
		result: true,
		want:   redistest.State{"_functions": redistest.Hash{"v": "g"}},
	},
	{
		name:   "claims stand",
		seed:   working(redistest.State{"_functions": redistest.Hash{"w": "f"}}),
		do:     unregisterW,
		result: false,
	},
	{
		name:   "one claim stands",
		seed:   working(left("4-1", "4")),
		do:     unregisterW,
		result: false,
	},
	{
		name: "claim times of empty claims go too, other workers stay",
		seed: redistest.State{
			"_worker:w": alive, "_worker:v": alive, "_workers": redistest.Set{"v", "w"},
			"_claims:w": redistest.Hash{"3": "1"}, "_claims:v": redistest.Hash{"3": "1"},
		},
		do:     unregisterW,
		result: true,
		want: redistest.State{
			"_worker:v": alive, "_workers": redistest.Set{"v"},
			"_claims:v": redistest.Hash{"3": "1"},
		},
	},
	{
		name:   "a second time",
		do:     unregisterW,
		result: true,
	},
	{
		name:   "dead, and nothing is left",
		seed:   redistest.State{"_workers": redistest.Set{"v", "w"}, "_claims:w": redistest.Hash{"3": "1"}},
		do:     forgetW,
		result: true,
		want:   redistest.State{"_workers": redistest.Set{"v"}},
	},
	{
		name: "dead, orders to it go with it",
		seed: with(redistest.State{"_workers": redistest.Set{"w"}},
			controlled(redistest.Hash{"worker:w": "stop", "worker:v": "pause"})),
		do:     forgetW,
		result: true,
		want:   controlled(redistest.Hash{"worker:v": "pause"}),
	},
	{
		name: "dead, what it has published goes with it",
		seed: redistest.State{
			"_workers": redistest.Set{"w"}, "_functions": redistest.Hash{"w": "f", "w status": "s", "v": "g"},
		},
		do:     forgetW,
		result: true,
		want:   redistest.State{"_functions": redistest.Hash{"v": "g"}},
	},
	{
		name:   "dead, but claims stand",
		seed:   working(redistest.State{"_worker:w": nil, "_functions": redistest.Hash{"w": "f"}}),
		do:     forgetW,
		result: false,
	},
	{
		name:   "alive without claims",
		seed:   redistest.State{"_worker:w": alive, "_workers": redistest.Set{"w"}},
		do:     forgetW,
		result: false,
	},
	{
		name:   "alive with claims",
		seed:   working(nil),
		do:     forgetW,
		result: false,
	},
}}

// knownTo asks about worker v.
func knownTo(s *Store) (any, error) {
	l := s.NewLink()
	defer l.HangUp()
	if _, err := l.Open(bg); err != nil {
		return nil, err
	}
	return Known(bg, &l, []*Store{s}, "v")
}

var knownCases = storeTable{script: "known", cases: []storeCase{
	{
		name:   "lost",
		seed:   redistest.State{"_workers": redistest.Set{"w"}, "_functions": redistest.Hash{"w": "f"}},
		do:     knownTo,
		result: []bool{false},
		want: redistest.State{
			"_workers": redistest.Set{"v", "w"}, "_functions": redistest.Hash{"w": "f"},
		},
	},
	{
		name:   "known",
		seed:   redistest.State{"_workers": redistest.Set{"v"}, "_functions": redistest.Hash{"v": "f"}},
		do:     knownTo,
		result: []bool{true},
		idle:   true,
	},
}}

// A user who may not call TYPE can renew heartbeats beside a key of another type.
func TestBeatWithoutTYPE(t *testing.T) {
	t.Parallel()
	b := redistest.NewBench(t, redistest.Start(t))
	b.Do("ACL", "SETUSER", "u", "on", ">p", "~*", "&*", "+@all", "-type")
	s := NewStore(dialled(t, strings.Replace(b.Server.URL(), "redis://", "redis://u:p@", 1)), "", b.Name)
	_, err := s.Register(bg, "w", time.Hour, "v")
	b.Must(err)
	b.Do("SET", b.Name+"_control", "of another program")
	link := s.NewLink()
	defer link.HangUp()
	_, err = link.Open(bg)
	b.Must(err)
	pulses, _, err := Beat(bg, &link, []*Store{s}, "w", 2*time.Hour, true, true)
	if want := []Pulse{{true, -1, -1}}; err != nil || !slices.Equal(pulses, want) {
		t.Errorf("found %v, %v, expected %v", pulses, err, want)
	}
	b.Do("DEL", b.Name+"_control")
}
