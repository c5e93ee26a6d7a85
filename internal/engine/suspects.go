package engine

import (
	"time"

	"github.com/godelayed/delayed/internal/lifecycle"
)

// A worker that dies had tasks in hand. One of them may be the cause; most often none is. So a death that a task shared
// with others only makes it suspect, and the archive is for tasks that died alone. The more deaths a task has shared,
// the fewer suspects a worker holds at once, until one runs alone: that finds one poison task among k after about log k
// deaths.
//
// A task of one death runs as any other does. One of more waits among the suspects of its queue, a pending list of its
// own, where it holds up nobody else.

const (
	// minSuspectDeaths is from how many deaths on a task waits among the suspects of its queue.
	minSuspectDeaths = 2
	// shortestPatience and longestPatience bound how long a worker claims nothing and waits for its other tasks to end,
	// so that a suspect can run alone. Each time that this was in vain it waits for twice as long.
	shortestPatience = 2 * time.Second
	longestPatience  = time.Minute
	// settlePause is the time between two looks whether Redis knows how the tasks before a lone suspect ended.
	settlePause = 5 * time.Millisecond
)

// suspectsHeld returns how many tasks of so many deaths or more a worker with so many executors holds at once: all, a
// quarter of them, and so on. Where that is 1, the task runs alone.
func suspectsHeld(executors, deaths int) int {
	for ; deaths >= minSuspectDeaths && executors > 1; deaths-- {
		executors /= 4
	}
	return max(executors, 1)
}

// suspicionOf returns how many deaths of a task count now, at most 255.
func suspicionOf(c *Claim, now time.Time) uint8 {
	m := &c.msg.Meta
	if m.Deaths == 0 || now.UnixMilli()-m.DiedAt >= lifecycle.DeathLife.Milliseconds() {
		return 0
	}
	return uint8(min(m.Deaths, 255)) //nolint:gosec // within these bounds
}
