package lane

import (
	"time"

	"github.com/godelayed/delayed/internal/lifecycle"
)

// When a worker dies, one of its claimed tasks may be the cause; most often none is. So a death only makes its tasks
// suspects, and a task is archived only for deaths that happened while it was its worker's only task. The more deaths a
// task has shared with others, the fewer such tasks a worker takes at once, until one runs alone. This finds one poison
// task among k after about log k deaths.
//
// A task with one death runs like any other. A task with more waits in the queue's list of suspects, a pending list
// where it does not delay other tasks.

const (
	// MinSuspectDeaths is the number of deaths from which a task waits in the list of suspects.
	MinSuspectDeaths = 2
	// MaxQuarantined is the number of deaths of workers up to which a child process counts as safe for a suspect.
	MaxQuarantined = 2
	// ShortestPatience and LongestPatience bound how long a worker claims nothing and waits for its other tasks to end,
	// so that a suspect can run alone. After each such wait in vain the next one is twice as long.
	ShortestPatience = 2 * time.Second
	// LongestPatience is the longest such wait.
	LongestPatience = time.Minute
	// SettlePause is the time between two checks whether Redis knows how the other tasks have ended.
	SettlePause = 5 * time.Millisecond
)

// SuspectsHeld returns how many tasks with that many deaths or more a worker takes at once: a quarter of its executors
// for two deaths, a sixteenth for three, and so on. If that is 1, the task runs alone.
func SuspectsHeld(executors, deaths int) int {
	for ; deaths >= MinSuspectDeaths && executors > 1; deaths-- {
		executors /= 4
	}
	return max(executors, 1)
}

// WorkerDeaths returns how many of a task's deaths were those of workers with other tasks.
func WorkerDeaths(c *Claim) int64 {
	m := &c.Msg.Meta
	if m.Extra == nil {
		return int64(m.Deaths)
	}
	return int64(m.Deaths) - m.Extra.AloneDeaths
}

// SuspicionOf returns how many deaths count against a task now, at most 255.
func SuspicionOf(c *Claim, now time.Time) uint8 {
	m := &c.Msg.Meta
	if m.Deaths == 0 || now.UnixMilli()-m.DiedAt >= lifecycle.DeathLife.Milliseconds() {
		return 0
	}
	return uint8(min(m.Deaths, 255)) //nolint:gosec // within these bounds
}
