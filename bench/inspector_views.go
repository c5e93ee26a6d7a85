package main

import (
	"context"
	"crypto/sha1"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/gomodule/redigo/redis"

	"github.com/godelayed/delayed/inspect"
	"github.com/godelayed/delayed/lua"
	"github.com/godelayed/delayed/state"
)

// view is something that people look at.
type view struct {
	name string
	read func(ctx context.Context, s *inspected) error
}

var views = slices.Concat([]view{
	{"overview of all queues", func(ctx context.Context, s *inspected) error {
		_, err := s.ins.Queues(ctx)
		return err
	}},
	{"workers", func(ctx context.Context, s *inspected) error {
		_, err := s.ins.Workers(ctx)
		return err
	}},
	{"functions", func(ctx context.Context, s *inspected) error {
		_, err := s.ins.Functions(ctx)
		return err
	}},
	{"metrics of the last five minutes, by second", func(ctx context.Context, s *inspected) error {
		_, err := s.ins.Metrics(ctx, s.name, inspect.Seconds, time.Now().Add(-5*time.Minute), time.Time{})
		return err
	}},
	{"backlog", func(ctx context.Context, s *inspected) error {
		_, err := s.ins.Backlog(ctx, s.name)
		return err
	}},
}, pages(state.Pending), pages(state.Active), pages(state.Scheduled), pages(state.Archived))

// actions change tasks of a list: of pending ones the last, which do not start meanwhile.
var actions = []view{
	{"delete the last 100 pending tasks", act(state.Pending, inspect.Delete())},
	{"archive the last 100 pending tasks", act(state.Pending, inspect.Archive())},
	{"run the first 100 archived tasks now", act(state.Archived, inspect.RunNow())},
	{"reschedule the first 100 scheduled tasks", act(state.Scheduled, inspect.Reschedule(time.Now().AddDate(0, 1, 0)))},
}

func act(from state.Task, action inspect.Action) func(context.Context, *inspected) error {
	return func(ctx context.Context, s *inspected) error {
		page, err := s.ins.Tasks(ctx, s.name, inspect.Query{
			State: from, NewestFirst: from == state.Pending, Limit: 100,
		})
		if err != nil {
			return err
		}
		var ids []string
		for _, t := range page.Tasks {
			ids = append(ids, t.ID)
		}
		_, err = s.ins.Do(ctx, s.name, action, ids...)
		return err
	}
}

// pages are the first pages of a list, from its beginning and from its end.
func pages(of state.Task) []view {
	page := func(newest bool) func(context.Context, *inspected) error {
		return func(ctx context.Context, s *inspected) error {
			_, err := s.ins.Tasks(ctx, s.name, inspect.Query{State: of, NewestFirst: newest, Limit: 50})
			return err
		}
	}
	return []view{
		{fmt.Sprintf("first 50 %v tasks", of), page(false)}, {fmt.Sprintf("last 50 %v tasks", of), page(true)},
	}
}

// scriptNames returns the names of scripts by the digests that EVALSHA gets.
func scriptNames() map[string]string {
	names := map[string]string{}
	for _, name := range lua.Names() {
		names[fmt.Sprintf("%x", sha1.Sum([]byte(lua.Source(name))))] = "script " + name + ".lua"
	}
	return names
}

// recordSlow makes the server record what takes longer than so many µs, and forgets what it has recorded.
func recordSlow(conn redis.Conn, micros int) error {
	if _, err := conn.Do("CONFIG", "SET", "slowlog-log-slower-than", micros, "slowlog-max-len", "100000"); err != nil {
		return err
	}
	_, err := conn.Do("SLOWLOG", "RESET")
	return err
}

// slowRuns returns the times, in ms, of the commands and scripts that the server has recorded, by name.
func slowRuns(conn redis.Conn) (map[string][]float64, error) {
	entries, err := redis.Values(conn.Do("SLOWLOG", "GET", "100000"))
	if err != nil {
		return nil, err
	}
	names := scriptNames()
	times := map[string][]float64{}
	for _, e := range entries {
		var id, at, micros int64
		var command []string
		fields, err := redis.Values(e, nil)
		if err == nil {
			_, err = redis.Scan(fields, &id, &at, &micros, &command)
		}
		if err != nil {
			return nil, err
		}
		name := command[0]
		if strings.EqualFold(name, "EVALSHA") && names[command[1]] != "" {
			name = names[command[1]]
		}
		if script, _, ok := strings.Cut(command[min(1, len(command)-1)], ":"); ok && strings.EqualFold(name, "EVAL") {
			name = "script " + strings.TrimPrefix(script, "-- ") + ".lua" // its first line begins with its name
		}
		times[name] = append(times[name], float64(micros)/1000)
	}
	return times, nil
}

// printSlow prints which commands and scripts kept the server for longer than a millisecond, and for how long at most:
// the three longest, because the time in which the system gave the processor to another program counts too.
func (s *inspected) printSlow() error {
	times, err := slowRuns(s.conn)
	if err != nil {
		return err
	}
	fmt.Printf("\n| what took longer than 1 ms in the server | times | longest [ms] |\n|---|---:|---|\n")
	for _, name := range slices.Sorted(maps.Keys(times)) {
		fmt.Printf("| %s | %d | %s |\n", name, len(times[name]), longestText(times[name]))
	}
	return nil
}
