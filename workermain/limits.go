package workermain

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
)

// addLimits adds the settings after which the worker stops by itself.
func (s *settings) addLimits() {
	w, l := &s.worker, &s.worker.Limits
	s.add("once", "", "run one task, or none if there is none, and end: -max-tasks 1 -stop-when-empty", "false",
		func(v string) error {
			once := false
			if err := toggle(&once)(v); err != nil || !once {
				return err
			}
			l.MaxTasks, l.StopWhenEmpty = 1, true
			return nil
		})
	s.add("stop-when-empty", "", "end when no task is pending or due", strconv.FormatBool(l.StopWhenEmpty),
		toggle(&l.StopWhenEmpty))
	s.add("stop-when-empty-for", "duration", "end when that has been so for that long; 0: do not",
		l.StopWhenEmptyFor.String(), duration(&l.StopWhenEmptyFor, 0))
	s.add("max-tasks", "n", "end when n tasks have ended; 0: do not", strconv.Itoa(l.MaxTasks), number(&l.MaxTasks, 0))
	s.add("max-time", "duration", "end after that time; 0: do not", l.MaxTime.String(), duration(&l.MaxTime, 0))
	s.add("max-memory", "size", "end when the process has more memory: bytes, or with KiB, MiB, GiB; 0: do not",
		showSize(l.MaxMemory), size(&l.MaxMemory))
	s.add("isolate", "", "run all tasks in child processes, which can be killed; see delayed.Isolation",
		strconv.FormatBool(w.Isolation.All), toggle(&w.Isolation.All))
	s.add("isolate-memory", "size", "what a child process may allocate after its start: bytes, or with KiB, MiB, GiB; "+
		"0: any", showSize(w.Isolation.Memory), size(&w.Isolation.Memory))
	s.add("isolate-cpu", "duration", "processor time that a task in a child process may use; 0: any",
		w.Isolation.CPU.String(), duration(&w.Isolation.CPU, 0))
	s.add("rest", "duration", "pause of each executor after a task", w.Rest.String(), duration(&w.Rest, 0))
}

// sizeUnits are the units of sizes, the largest first.
var sizeUnits = []struct {
	name  string
	shift int
}{{"GiB", 30}, {"MiB", 20}, {"KiB", 10}}

// size parses 512MiB, 512M or a number of bytes.
func size(p *int64) func(string) error {
	return func(v string) error {
		digits, shift := v, 0
		for _, unit := range sizeUnits {
			for _, suffix := range []string{unit.name, unit.name[:1]} {
				if cut, ok := strings.CutSuffix(digits, suffix); ok && shift == 0 {
					digits, shift = cut, unit.shift
				}
			}
		}
		n, err := strconv.ParseInt(digits, 10, 64)
		if err != nil || n < 0 || n > math.MaxInt64>>shift {
			return errors.New("expected a number of bytes, or one with KiB, MiB or GiB, such as 512MiB")
		}
		*p = n << shift
		return nil
	}
}

// showSize is the opposite of size.
func showSize(n int64) string {
	for _, unit := range sizeUnits {
		if n > 0 && n%(1<<unit.shift) == 0 {
			return fmt.Sprintf("%d%s", n>>unit.shift, unit.name)
		}
	}
	return strconv.FormatInt(n, 10)
}
