package redisstore

import (
	"fmt"
	"maps"
	"strconv"
	"time"

	"github.com/godelayed/delayed/internal/redistest"
)

// controlWith changes a field and returns what a worker reads then.
func controlWith(field, value string) func(s *Store) (any, error) {
	return func(s *Store) (any, error) {
		was, err := s.SetControl(bg, field, value)
		if err != nil {
			return nil, err
		}
		c, err := s.Control(bg, "w")
		if time.Since(time.UnixMilli(c.Version)).Abs() < time.Hour {
			c.Version = 1 // it is the current time
		}
		if c.Restart != "" {
			c.Restart = "set"
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

// controlledNow is a control hash that was changed just now.
func controlledNow(fields redistest.Hash) redistest.State {
	s := controlled(fields)
	s["_control"].(redistest.Hash)["version"] = nowMark //nolint:errcheck // see controlled
	return s
}

var controlCases = storeTable{script: "control", cases: []storeCase{
	{
		name:   "pause",
		do:     controlWith(ControlPaused, ValueNow),
		result: "false {1 true  0 }",
		want:   controlledNow(redistest.Hash{"paused": nowMark}),
	},
	{
		name:   "pause again",
		seed:   controlled(redistest.Hash{"paused": "7", "weight": "3"}),
		do:     controlWith(ControlPaused, ValueNow),
		result: "true {1 true  3 }",
		want:   controlledNow(redistest.Hash{"paused": nowMark, "weight": "3"}),
	},
	{
		name:   "resume",
		seed:   controlled(redistest.Hash{"paused": "7", "restart": "8"}),
		do:     controlWith(ControlPaused, ""),
		result: "true {1 false set 0 }",
		want:   controlledNow(redistest.Hash{"restart": "8"}),
	},
	{
		name:   "resume what is not paused",
		do:     controlWith(ControlPaused, ""),
		result: "false {1 false  0 }",
		want:   controlledNow(nil),
	},
	{
		name:   "restart",
		seed:   controlled(redistest.Hash{"restart": "8"}),
		do:     controlWith(ControlRestart, ValueNow),
		result: "true {1 false set 0 }",
		want:   controlledNow(redistest.Hash{"restart": nowMark}),
	},
	{
		name:   "an order to one worker",
		seed:   controlled(redistest.Hash{"worker:v": "stop"}),
		do:     controlWith(ControlWorker+"w", "pause"),
		result: "false {1 false  0 pause}",
		want:   controlledNow(redistest.Hash{"worker:v": "stop", "worker:w": "pause"}),
	},
	{
		name:   "a version ahead of the clock rises all the same",
		seed:   redistest.State{"_control": redistest.Hash{"version": strconv.FormatInt(later, 10), "weight": "2"}},
		do:     controlWith(ControlWeight, "9"),
		result: fmt.Sprintf("true {%d false  9 }", int64(later+1)),
		want:   redistest.State{"_control": redistest.Hash{"version": strconv.FormatInt(later+1, 10), "weight": "9"}},
	},
	{
		name:   "what cannot be read counts for nothing",
		seed:   redistest.State{"_control": redistest.Hash{"version": "x", "weight": "heavy"}},
		do:     controlWith(ControlPaused, ""),
		result: "false {1 false  0 }",
		want:   redistest.State{"_control": redistest.Hash{"version": nowMark, "weight": "heavy"}},
	},
}}
