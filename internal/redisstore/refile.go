package redisstore

import (
	"context"
	"time"
)

// RerunPage bounds the tasks that one script makes pending again or deletes, because each message may have a megabyte.
const RerunPage = 16

// Rerun is an archived task that is to run again.
type Rerun struct {
	Name     string // that it is filed under
	ID       string
	Old, New []byte // its message before and after
	Own      bool   // keeps its id taken
}

// Rerun makes archived tasks pending. For each it returns 1 if the task is pending now, 0 if it was not archived, -1 if
// its message was not the old one.
func (s *Store) Rerun(ctx context.Context, tasks []Rerun) ([]int, error) {
	return s.rerun(ctx, s.keys.archived, tasks)
}

func (s *Store) rerun(ctx context.Context, set string, tasks []Rerun) ([]int, error) {
	args := make([]any, 0, 1+5*len(tasks))
	args = append(args, LockLife.Milliseconds())
	for i := range tasks {
		t := &tasks[i]
		args = append(args, t.Name, t.ID, t.Old, t.New, flag(t.Own))
	}
	keys := []string{
		set, s.keys.tasks, s.keys.info, s.keys.list, s.keys.noti, s.keys.revoked, s.keys.locks,
	}
	reply, err := s.eval(ctx, "rerun", keys, args...)
	return outcomes(reply, err, len(tasks))
}

// Refiled describes a change to a filed task: a new set, due time or message.
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
	reply, err := s.eval(ctx, "refile", []string{
		s.shelfKey(from), s.shelfKey(to), k.tasks, k.info, k.wake, k.locks, s.StatsKey(),
	}, args...)
	return outcomes(reply, err, len(tasks))
}

// RunFiled makes tasks of a set pending, as Rerun does with archived ones. Those keep their locks.
func (s *Store) RunFiled(ctx context.Context, from Shelf, tasks []Rerun) ([]int, error) {
	return s.rerun(ctx, s.shelfKey(from), tasks)
}
