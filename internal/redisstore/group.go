package redisstore

import (
	"cmp"
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/gomodule/redigo/redis"

	"github.com/godelayed/delayed/internal/group"
	"github.com/godelayed/delayed/internal/wire"
)

const (
	// MaxRipe bounds the groups that one call of ripe returns to a mover.
	MaxRipe = 16
	// maxPeek bounds the messages of a group that Peek reads, and peekPage those that one script reads.
	maxPeek  = group.MaxGroupSize + 1
	peekPage = group.DefaultGroupSize + 1
)

var (
	// groupBytes and groupValues are the bytes and values of arguments at which a group is full. They leave room for
	// the head of the combined message.
	groupBytes  = wire.Default.Bytes - 32<<10
	groupValues = wire.Default.Elems - 512
)

// groupKeys returns the first arguments of the script gather, for the given groups.
func (s *Store) groupKeys(groups []string) []any {
	head := make([]any, 0, 2+4*len(groups)+2+7)
	head = append(head, Scripts["gather"].Sha, 4*len(groups))
	for _, g := range groups {
		head = append(head, s.keys.group+g, s.keys.groups, s.keys.gathered, s.keys.wake)
	}
	return head
}

// gatherHead returns the arguments of the script gather that come before the calls, without KEYS.
func (s *Store) gatherHead() []any { return append(s.groupKeys(nil), groupBytes, groupValues) }

// memberArgs returns the arguments of a call whose group is the nth of KEYS, from 1.
func memberArgs(m *group.Member, n int) [7]any {
	limits := strconv.FormatInt(m.How.MaxDelay, 10) + " " + strconv.Itoa(m.How.MaxSize)
	return [7]any{n, m.Group, m.How.Grace, limits, m.Bytes, m.Values, m.Message}
}

// groupCost is how many calls Gather counts each group after the first as, because it takes Redis several times as long
// as a call.
const groupCost = 4

// Gather adds the first members to their groups, all or none, and returns how many these are: as many as one call
// takes.
func (s *Store) Gather(ctx context.Context, members []group.Member) (n int, err error) {
	var groups []string
	var calls []any
	size, numbers := 0, map[string]int{}
	for i := range members {
		m := &members[i]
		size += len(m.Message)
		number := numbers[m.Group]
		if number == 0 {
			number = len(groups) + 1
		}
		further := max(number, len(groups)) - 1
		if i > 0 && (size > MaxCallBytes || i+groupCost*further >= MaxFiled) {
			break
		}
		if number > len(groups) {
			groups, numbers[m.Group] = append(groups, m.Group), number
		}
		task := memberArgs(m, number)
		calls = append(calls, task[:]...)
		n++
	}
	args := newArgs(withGroups(s.gatherHead(), s, groups))
	args.list = append(args.list, calls...)
	_, err = s.accept(ctx, byGather, args, n)
	return n, err
}

// weigh returns the bytes and the number of values of the arguments of members.
func weigh(members []group.Member) (bytes, values int) {
	for i := range members {
		bytes += members[i].Bytes
		values += members[i].Values
	}
	return bytes, values
}

// Ripe returns up to n groups that are due, and the time until the next one is due, negative for none. It puts them off
// by the time loan, so that no other mover gets them meanwhile.
func (s *Store) Ripe(ctx context.Context, n int, loan time.Duration) (groups []string, next time.Duration, err error) {
	reply, err := redis.Values(s.eval(ctx, "ripe", []string{s.keys.groups}, n, loan.Milliseconds()))
	if err != nil {
		return nil, 0, err
	}
	ms, rest, err := numbered(reply)
	if err != nil {
		return nil, 0, err
	}
	if groups, err = redis.Strings(rest, nil); err != nil {
		return nil, 0, fmt.Errorf("%w: ripe: %w", ErrReply, err)
	}
	return groups, time.Duration(ms) * time.Millisecond, nil
}

// numbered splits a reply that begins with a number.
func numbered(reply []any) (n int64, rest []any, err error) {
	if len(reply) == 0 {
		return 0, nil, fmt.Errorf("%w: nothing", ErrReply)
	}
	n, ok := reply[0].(int64)
	if !ok {
		return 0, nil, fmt.Errorf("%w: %T in place of a number", ErrReply, reply[0])
	}
	return n, reply[1:], nil
}

// Peek reads the first messages of a group: size, which is the most calls to combine, and one more. It reads fewer if
// they have more than most bytes, and stops before one that is too large; if that is the first, large is its size.
// version is that of the control hash before it. If another worker fires the group meanwhile, Fire refuses what was
// read, because each call has an id, so that the group then begins with another message.
func (s *Store) Peek(
	ctx context.Context, group string, most int,
) (size int, version int64, messages [][]byte, large int, err error) {
	for {
		page := min(peekPage, maxPeek-len(messages))
		n, v, found, err := s.peekPage(ctx, group, most, page, len(messages))
		if err != nil {
			return 0, 0, nil, 0, err
		}
		if len(messages) == 0 {
			size, version = cmp.Or(n, maxPeek), v
		}
		for _, m := range found {
			if m.Size > 0 {
				return size, version, nil, m.Size, nil
			}
			messages, most = append(messages, m.Bytes), most-len(m.Bytes)
		}
		if len(found) < page || most <= 0 || len(messages) >= min(size+1, maxPeek) {
			return size, version, messages[:min(len(messages), size+1)], 0, nil
		}
	}
}

// peekPage reads up to n messages behind the first ones of a group.
func (s *Store) peekPage(
	ctx context.Context, group string, most, n, behind int,
) (size int, version int64, found []Stored, err error) {
	reply, err := redis.Values(s.eval(ctx, "peek", []string{s.keys.group + group, s.keys.gathered, s.keys.control},
		group, most, n, wire.WorkerLimits.Bytes, behind))
	if err != nil {
		return 0, 0, nil, err
	}
	calls, rest, err := numbered(reply)
	if err == nil {
		version, rest, err = numbered(rest)
	}
	if err == nil {
		found, err = storedAll(rest, nil)
	}
	return int(calls), version, found, err
}

// Firing is what firing a group did.
type Firing uint8

// Outcomes of firing a group.
const (
	firedElsewhere Firing = iota // another worker was faster
	FiredHere                    // the combined calls are pending
	FiredNot                     // some of its calls may have been canceled since Peek
)

// Fire makes messages pending in place of the members that they combine, if the group still begins with these. next is
// when the member behind them was made, in ms, 0 if there is none or it is unknown. version is that of Peek. Without
// members it forgets an empty group. due is the time until the group is due again, negative if it is gone.
func (s *Store) Fire(
	ctx context.Context, group string, members []group.Member, next, version int64, messages [][]byte,
) (fired Firing, due time.Duration, err error) {
	var first, last []byte
	if n := len(members); n > 0 {
		first, last = members[0].Message, members[n-1].Message
	}
	bytes, values := weigh(members)
	args := argsOf(messages, group, len(members), first, last, bytes, values, next, groupBytes, groupValues, version)
	keys := []string{s.keys.group + group, s.keys.groups, s.keys.gathered, s.keys.list, s.keys.noti, s.keys.control}
	reply, err := s.eval(ctx, "fire", keys, args...)
	answer, err := ints(reply, err, 2)
	if err != nil {
		return firedElsewhere, 0, err
	}
	return Firing(answer[0]), time.Duration(answer[1]) * time.Millisecond, nil //nolint:gosec // 0 to 2
}

// Join ends claims by adding their tasks, all of one group, to that group.
func (s *Store) Join(
	ctx context.Context, worker string, batches []uint64, tokens []string, members []group.Member,
) ([]bool, error) {
	last := &members[len(members)-1]
	args := make([]any, 0, 7+len(batches)+3*len(tokens))
	args = append(args, last.Group, last.How.Grace, last.How.MaxDelay, last.How.MaxSize, groupBytes, groupValues)
	args = appendBatches(args, batches)
	for i, t := range tokens {
		args = append(args, t, members[i].Bytes, members[i].Values)
	}
	keys := []string{
		s.keys.processing + worker, s.keys.claims + worker, s.keys.group + last.Group, s.keys.groups, s.keys.gathered,
		s.keys.wake,
	}
	reply, err := s.eval(ctx, "join", keys, args...)
	return answers(reply, err, len(tokens))
}

// groupPage bounds the messages of a group that one script reads in search of a task.
const groupPage = 200

// WaitingGroup is a group of calls that waits for more of them.
type WaitingGroup struct {
	Name          string // in the groups set
	Key, Function string // empty when the first call cannot be read
	Size          int
	Due           time.Time
}

// Groups reads n groups from a rank on. It leaves out those that are fired meanwhile.
func (s *Store) Groups(ctx context.Context, from, n int) ([]WaitingGroup, error) {
	found, err := listedOf(s.do(ctx, "ZRANGE", s.keys.groups, from, from+n-1, "WITHSCORES"))
	if err != nil {
		return nil, err
	}
	list := make([]WaitingGroup, 0, len(found))
	for _, f := range found {
		size, err := redis.Int(s.do(ctx, "LLEN", s.keys.group+f.ID))
		if err != nil {
			return nil, err
		}
		if size == 0 {
			continue
		}
		first, err := s.pageFrom(ctx, s.keys.group+f.ID, 0, 1, false)
		if err != nil {
			return nil, err
		}
		g := WaitingGroup{Name: f.ID, Size: size, Due: f.At}
		for _, m := range first {
			if msg, err := wire.Parse(m.Bytes, wire.WorkerLimits); err == nil && msg.Meta.Extra != nil {
				g.Key, g.Function = msg.Meta.Extra.Group, msg.Path
			}
		}
		list = append(list, g)
	}
	return list, nil
}

// GroupCount returns how many groups there are.
func (s *Store) GroupCount(ctx context.Context) (int, error) {
	return redis.Int(s.do(ctx, "ZCARD", s.keys.groups))
}

// MostHastened is how many groups Hasten takes.
const MostHastened = 1000

// Hasten makes groups due now, at most MostHastened, and returns how many of them there were.
func (s *Store) Hasten(ctx context.Context, names []string) (int, error) {
	return redis.Int(s.eval(ctx, "hasten", []string{s.keys.groups, s.keys.wake}, argsOf(names)...))
}

// Aggregating finds the task with the given id in a group, and returns its message. It reads one group after the other,
// so use it for single tasks, and only when they are nowhere else.
func (s *Store) Aggregating(ctx context.Context, id string) (message []byte, waits bool, err error) {
	names, err := redis.Strings(s.do(ctx, "ZRANGE", s.keys.groups, 0, -1))
	if err != nil {
		return nil, false, err
	}
	for _, name := range names {
		for from := 0; ; {
			messages, err := s.pageFrom(ctx, s.keys.group+name, from, groupPage, false)
			if err != nil {
				return nil, false, err
			}
			for _, m := range messages {
				if msg, err := wire.Parse(m.Bytes, wire.WorkerLimits); err == nil && msg.Meta.ID == id {
					return m.Bytes, true, nil
				}
			}
			if len(messages) == 0 {
				break
			}
			from += len(messages)
		}
	}
	return nil, false, nil
}
