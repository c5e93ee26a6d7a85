package redisstore

import (
	"fmt"

	"github.com/godelayed/delayed/internal/redistest"
)

// meter is a source that measures each command.
type meter struct {
	Source
	probe func() float64     // it measures how much the result of probe grows during a command
	most  map[string]float64 // the largest growth by command or name of the script
	calls map[string]int
}

// newMeter returns a meter of the commands that go to a source.
func newMeter(src Source, probe func() float64) *meter {
	m := &meter{probe: probe, most: map[string]float64{}, calls: map[string]int{}}
	m.Source = redistest.Intercept(src, func(cmd string, args []any, send func() (any, error)) (any, error) {
		name := nameOfCommand(cmd, args)
		start := m.probe()
		reply, err := send()
		m.calls[name]++
		m.most[name] = max(m.most[name], m.probe()-start)
		return reply, err
	})
	return m
}

// nameOfCommand returns the name of a command, or that of the script that it runs.
func nameOfCommand(cmd string, args []any) string {
	if cmd == "EVALSHA" && len(args) > 0 {
		for name, row := range Scripts {
			if row.Sha == fmt.Sprint(args[0]) {
				return name
			}
		}
	}
	return cmd
}
