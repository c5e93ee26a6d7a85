package redisstore

import (
	"bytes"
	"context"
	"time"
)

const (
	// MaxWithdrawn bounds the tasks that one call withdraws or refiles.
	MaxWithdrawn = 25
	// withdrawReach is how far from its place a task is looked for on each side, withdrawFar how far if it is not
	// there.
	withdrawReach = 200
	withdrawFar   = 2000
)

// gap stands in a pending list in the place of a task that was withdrawn. It is no message.
var gap = []byte("-")

// IsGap reports whether a member of a pending list is the place of a task that was withdrawn.
func IsGap(m Stored) bool { return bytes.Equal(m.Bytes, gap) }

// Withdrawing says where withdrawn tasks go.
type Withdrawing string

// The places.
const (
	WithdrawToArchive  Withdrawing = "archive"
	WithdrawToMove     Withdrawing = "move" // to the archive, from where they go to another queue: not counted
	WithdrawToSchedule Withdrawing = "schedule"
	WithdrawAndDrop    Withdrawing = "drop"
)

// Withdrawn is a pending task that is to be withdrawn.
type Withdrawn struct {
	Place   int // in the list, where it was last seen: 0 is the oldest
	Message []byte
	ID      string // "" if the message carries none and it is dropped
	Until   time.Time
	Info    []byte
	Awaited bool   // publish its end, because somebody may wait for it
	Lock    string // the lock that its message names
}

// Withdraw takes pending tasks out of their list. For each it returns 1 if it was taken, 0 if it is not near its place
// any more or was canceled, and −1 if another task has its id.
func (s *Store) Withdraw(
	ctx context.Context, how Withdrawing, legacy bool, tasks []Withdrawn,
) (answers []int, err error) {
	answers, err = s.withdraw(ctx, how, legacy, tasks, withdrawReach)
	var far []Withdrawn
	var at []int
	for i, answer := range answers {
		if answer == 0 { // claimed, as a rule; or many others were claimed since it was seen
			far, at = append(far, tasks[i]), append(at, i)
		}
	}
	if err != nil || len(far) == 0 {
		return answers, err
	}
	again, err := s.withdraw(ctx, how, legacy, far, withdrawFar)
	for i, answer := range again {
		answers[at[i]] = answer
	}
	return answers, err
}

// withdraw is Withdraw of tasks that are at most reach from their places.
func (s *Store) withdraw(
	ctx context.Context, how Withdrawing, legacy bool, tasks []Withdrawn, reach int,
) ([]int, error) {
	k := &s.keys
	set := k.archived
	if how == WithdrawToSchedule {
		set = k.scheduled
	}
	args := make([]any, 0, 4+7*len(tasks))
	args = append(args, string(how), flag(legacy), statsLife, reach)
	for i := range tasks {
		t := &tasks[i]
		args = append(args, t.Place, t.Message, t.ID, t.Until.UnixMilli(), t.Info, s.channel(t.ID, t.Awaited), t.Lock)
	}
	reply, err := s.eval(ctx, "withdraw", []string{
		k.list, k.noti, set, k.tasks, k.info, k.control, k.locks, s.StatsKey(), k.wake, k.revoked,
	}, args...)
	return outcomes(reply, err, len(tasks))
}
