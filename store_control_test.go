package delayed

import (
	"fmt"
	"maps"
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"

	"github.com/godelayed/delayed/internal/redistest"
)

// controlWith changes a field and shows what a worker reads then.
func controlWith(field, value string) func(s *store) (any, error) {
	return func(s *store) (any, error) {
		was, err := s.setControl(bg, field, value)
		if err != nil {
			return nil, err
		}
		c, err := s.control(bg, "w")
		if time.Since(time.UnixMilli(c.version)).Abs() < time.Hour {
			c.version = 1 // the time
		}
		if c.restart != "" {
			c.restart = "set"
		}
		return fmt.Sprint(was, " ", c), err
	}
}

// controlled is a control hash with a version of long ago.
func controlled(fields redistest.Hash) redistest.State {
	h := redistest.Hash{"version": "5"}
	maps.Copy(h, fields)
	return redistest.State{"_control": h}
}

// controlledNow is one that was changed just now.
func controlledNow(fields redistest.Hash) redistest.State {
	s := controlled(fields)
	s["_control"].(redistest.Hash)["version"] = nowMark //nolint:errcheck // see controlled
	return s
}

var controlCases = storeTable{script: "control", cases: []storeCase{
	{
		name:   "pause",
		do:     controlWith(controlPaused, valueNow),
		result: "false {1 true  0 }",
		want:   controlledNow(redistest.Hash{"paused": nowMark}),
	},
	{
		name:   "pause again",
		seed:   controlled(redistest.Hash{"paused": "7", "weight": "3"}),
		do:     controlWith(controlPaused, valueNow),
		result: "true {1 true  3 }",
		want:   controlledNow(redistest.Hash{"paused": nowMark, "weight": "3"}),
	},
	{
		name:   "resume",
		seed:   controlled(redistest.Hash{"paused": "7", "restart": "8"}),
		do:     controlWith(controlPaused, ""),
		result: "true {1 false set 0 }",
		want:   controlledNow(redistest.Hash{"restart": "8"}),
	},
	{
		name:   "resume what is not paused",
		do:     controlWith(controlPaused, ""),
		result: "false {1 false  0 }",
		want:   controlledNow(nil),
	},
	{
		name:   "restart",
		seed:   controlled(redistest.Hash{"restart": "8"}),
		do:     controlWith(controlRestart, valueNow),
		result: "true {1 false set 0 }",
		want:   controlledNow(redistest.Hash{"restart": nowMark}),
	},
	{
		name:   "an order to one worker",
		seed:   controlled(redistest.Hash{"worker:v": "stop"}),
		do:     controlWith(controlWorker+"w", orderPause),
		result: "false {1 false  0 pause}",
		want:   controlledNow(redistest.Hash{"worker:v": "stop", "worker:w": "pause"}),
	},
	{
		name:   "a version ahead of the clock rises all the same",
		seed:   redistest.State{"_control": redistest.Hash{"version": fmt.Sprint(later), "weight": "2"}},
		do:     controlWith(controlWeight, "9"),
		result: fmt.Sprintf("true {%d false  9 }", later+1),
		want:   redistest.State{"_control": redistest.Hash{"version": fmt.Sprint(later + 1), "weight": "9"}},
	},
	{
		name:   "what cannot be read counts for nothing",
		seed:   redistest.State{"_control": redistest.Hash{"version": "x", "weight": "heavy"}},
		do:     controlWith(controlPaused, ""),
		result: "false {1 false  0 }",
		want:   redistest.State{"_control": redistest.Hash{"version": nowMark, "weight": "heavy"}},
	},
}}

// TestControlIsPublished listens while the control hash changes.
func TestControlIsPublished(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	c, end := b.rdb.signals.subscribe(b.q.store.keys.signals())
	defer end()
	expectSignal(b, c, "")
	if err := b.q.Pause(t.Context()); err != nil {
		t.Fatal(err)
	}
	expectSignal(b, c, signalControl)
	if was, _ := redis.Int(b.Do("HLEN", b.Name+"_control"), nil); was != 2 {
		t.Errorf("%d fields, expected 2", was)
	}
}

// TestParkingIsPublished parks a task: workers that know its function hear of it.
func TestParkingIsPublished(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	c, end := b.rdb.signals.subscribe(b.q.store.keys.signals())
	defer end()
	expectSignal(b, c, "")
	b.Do("HSET", b.Name+"_processing:w", "1-1", "message")
	task := shelved{token: "1-1", id: "x", wait: time.Hour, info: []byte{0x80}, path: "mail.Welcome"}
	if _, _, err := b.q.store.shelve(t.Context(), "w", []uint64{1}, shelfParked, 0, nil, []shelved{task}); err != nil {
		t.Fatal(err)
	}
	expectSignal(b, c, signalParked+" mail.Welcome")
}
