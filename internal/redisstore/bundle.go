package redisstore

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/gomodule/redigo/redis"
)

// kind is one of the enqueueing scripts.
type kind uint8

const (
	byEnqueue kind = iota
	bySchedule
	byEnlist
	byGather
	numKinds
)

// kinds describes the calls of each script.
var kinds = [numKinds]struct {
	script *Script
	head   func(*Store) []any // arguments before those of the tasks
	width  int                // arguments of each task
	most   int                // tasks in a call
	// answers takes a reply apart, if it has an answer for each task.
	answers func(reply any, n int) ([]any, error)
}{
	byEnqueue:  {Scripts["enqueue"], (*Store).enqueueHead, 1, MaxBatchTasks, nil},
	bySchedule: {Scripts["schedule"], (*Store).scheduleHead, 3, MaxFiled, scheduleAnswers},
	byEnlist:   {Scripts["enlist"], (*Store).enlistHead, 7, MaxEnlisted, enlistAnswers},
	// Each of the calls may be for another group, which costs as much as enlisting.
	byGather: {Scripts["gather"], (*Store).gatherHead, 7, MaxEnlisted, nil},
}

// result is what became of one task.
type result struct {
	answer any
	err    error
}

// bundle holds the tasks of one call.
type bundle struct {
	kind    kind
	args    *scriptArgs   // with nil in place of the arguments of a task whose caller has left
	head    int           // how many arguments come before those of the tasks
	groups  []string      // of byGather: the groups of the tasks
	size    int           // bytes of the messages
	Waiting int           // tasks whose callers have not left
	left    []int         // places of those whose callers have
	Within  time.Duration // how long to wait for replicas: the longest time that one of the callers has
	sealed  bool          // a call has taken it
	next    *bundle

	// Set before done is closed.
	results []result // of the tasks, without those in left; those that are missing have err
	err     error
	done    chan struct{}
}

// full reports whether a task with a message of so many bytes goes into another bundle.
func (b *bundle) full(size int) bool {
	k := &kinds[b.kind]
	return len(b.args.list) == b.head+k.most*k.width || b.size+size > MaxCallBytes
}

// add adds the arguments of a task, and returns its place.
func (b *bundle) add(size int, grouped string, task []any) (place int) {
	start := len(b.args.list)
	b.args.list = append(b.args.list, task...)
	if grouped != "" {
		b.args.list[start] = b.numberOf(grouped)
	}
	b.size += size
	b.Waiting++
	return (start - b.head) / len(task)
}

// numberOf returns the number of a group among those of the bundle, from 1.
func (b *bundle) numberOf(group string) int {
	if i := slices.Index(b.groups, group); i >= 0 {
		return i + 1
	}
	b.groups = append(b.groups, group)
	return len(b.groups)
}

// remove takes the task at a place back.
func (b *bundle) remove(place int) {
	w := kinds[b.kind].width
	clear(b.args.list[b.head+place*w : b.head+(place+1)*w])
	b.left = append(b.left, place)
	b.Waiting--
}

// seal completes the arguments; nothing is added or removed after it.
func (b *bundle) seal(s *Store) {
	if len(b.left) > 0 {
		b.args.list = slices.DeleteFunc(b.args.list, func(a any) bool { return a == nil })
	}
	before := len(b.args.list)
	b.args.list = withGroups(b.args.list, s, b.groups)
	b.head += len(b.args.list) - before
}

// withGroups inserts the keys of groups into the arguments of byGather.
func withGroups(args []any, s *Store, groups []string) []any {
	if len(groups) == 0 {
		return args
	}
	return append(s.groupKeys(groups), args[2:]...)
}

// alone returns the arguments of a call for the nth task of a sealed bundle.
func (b *bundle) alone(n int) *scriptArgs {
	w := kinds[b.kind].width
	args := newArgs(b.args.list[:b.head])
	args.list[0] = kinds[b.kind].script.Sha // the bundle's call may have sent the source
	args.list = append(args.list, b.args.list[b.head+n*w:b.head+(n+1)*w]...)
	return args
}

// resultOf returns what became of the task at a place.
func (b *bundle) resultOf(place int) (any, error) {
	n := place
	for _, l := range b.left {
		if l < place {
			n--
		}
	}
	if n < len(b.results) {
		return b.results[n].answer, b.results[n].err
	}
	return nil, b.err
}

// refusedForOne reports whether Redis has refused a call as a whole, with nothing written, for a reason that need not
// concern each of its tasks.
func refusedForOne(k kind, err error) bool {
	var taken *TakenError
	return errors.As(err, &taken) || k != byEnqueue && IsWrongType(err)
}

// scheduleAnswers has no answers for tasks: the script files all of them or none.
func scheduleAnswers(reply any, n int) ([]any, error) {
	answer, err := ints(reply, nil, 2)
	switch {
	case err != nil:
		return nil, err
	case answer[0] == 1:
		return nil, nil
	case answer[1] < 0 || answer[1] >= int64(n):
		return nil, fmt.Errorf("%w: position %d of %d", ErrReply, answer[1], n)
	}
	return nil, &TakenError{place: int(answer[1])}
}

// enlistAnswers returns for each task "", or the id of the existing task that was kept instead.
func enlistAnswers(reply any, n int) ([]any, error) {
	values, err := redis.Values(reply, nil)
	if err != nil {
		return nil, err
	}
	if len(values) == 3 && values[0] == int64(0) {
		index, err := redis.Int(values[1], nil)
		id, err2 := redis.String(values[2], nil)
		if err != nil || err2 != nil || index < 0 || index >= n {
			return nil, fmt.Errorf("%w: enlist refused %v", ErrReply, values)
		}
		return nil, &EnlistError{index, TakenError{ID: id}}
	}
	if len(values) != n+1 {
		return nil, fmt.Errorf("%w: %d values from enlist, expected %d", ErrReply, len(values), n+1)
	}
	return values[1:], nil
}
