package redisstore

import (
	"bytes"
	"context"
	"fmt"
	"time"

	"github.com/gomodule/redigo/redis"
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
	answers, err := redis.Ints(s.eval(ctx, scriptWithdraw, []string{
		k.list, k.noti, set, k.tasks, k.info, k.control, k.locks, s.StatsKey(), k.wake, k.revoked,
	}, args...))
	if err == nil && len(answers) != len(tasks) {
		return nil, fmt.Errorf("%w: %d answers from withdraw, expected %d", ErrReply, len(answers), len(tasks))
	}
	return answers, err
}

// Refiled is a filed task that is to be in another set, or there with another time or message.
type Refiled struct {
	ID       string
	NewID    string // "": as it is
	Old, New []byte // its message before and after
	Until    time.Time
	Info     []byte // nil: as it is
	Awaited  bool   // publish its end, because somebody may wait for it
	Lock     string // the lock that its message names
}

// Refile moves filed tasks. With uncounted the counter of archived tasks stays: they are in the archive only on their
// way to another queue, or were archived elsewhere. For each it returns 1 if that was done, 0 if the task was not in
// the first set, −1 if its message was not the old one or another task has its new id.
func (s *Store) Refile(ctx context.Context, from, to Shelf, uncounted bool, tasks []Refiled) ([]int, error) {
	k := &s.keys
	args := make([]any, 0, 2+8*len(tasks))
	archives := 0
	switch {
	case to != ShelfArchived:
	case from == to:
		archives = 2
	case uncounted:
		archives = 3
	default:
		archives = 1
	}
	args = append(args, archives, statsLife)
	for i := range tasks {
		t := &tasks[i]
		args = append(args, t.ID, t.Old, t.New, t.Until.UnixMilli(), t.Info, s.channel(t.ID, t.Awaited), t.NewID,
			t.Lock)
	}
	answers, err := redis.Ints(s.eval(ctx, scriptRefile, []string{
		s.shelfKey(from), s.shelfKey(to), k.tasks, k.info, k.wake, k.locks, s.StatsKey(),
	}, args...))
	if err == nil && len(answers) != len(tasks) {
		err = fmt.Errorf("%w: %d answers from refile, expected %d", ErrReply, len(answers), len(tasks))
	}
	return answers, err
}

// RunFiled makes tasks of a set pending, as Rerun does with archived ones. Those keep their locks.
func (s *Store) RunFiled(ctx context.Context, from Shelf, tasks []Rerun) ([]int, error) {
	return s.rerun(ctx, s.shelfKey(from), tasks)
}
