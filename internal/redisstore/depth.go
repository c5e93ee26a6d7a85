package redisstore

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/gomodule/redigo/redis"
)

const (
	// DepthStep is how often workers note how many tasks are pending, while there are some.
	DepthStep = 10 * time.Second
	// DepthRest is how often they note that there are none.
	DepthRest = 28 * DepthStep
	// EmptyStands is for how long that holds, from the beginning of the step or minute for which it was noted, if
	// nothing else is noted.
	EmptyStands = 5 * time.Minute
)

// depthQueues bounds the queues of one call.
const depthQueues = 50

// depthRings says for each grain where Redis keeps depths. The script has the same numbers.
var depthRings = [...]struct {
	mark          string // of the fields
	step          time.Duration
	steps, fields int64 // how many depths a field has, and how many fields there are
}{
	GrainSecond: {"s", DepthStep, 90, 5},
	GrainMinute: {"m", time.Minute, 120, 13},
	GrainDay:    {"d", 24 * time.Hour, 45, 3},
}

// NoteDepths notes for stores of one slot how many tasks are pending, where nobody has done so yet for the ten seconds
// in which now is, a time by Redis's clock. It returns what it has noted; -1: somebody else has, or a key of the store
// is of another type, which the error says.
func NoteDepths(ctx context.Context, src Source, stores []*Store, now time.Time) (noted []int64, err error) {
	return perStore(stores, depthQueues, -1, func(page []*Store) ([]int64, error) {
		keys := make([]string, 0, 4*len(page))
		for _, s := range page {
			keys = append(keys, s.keys.depths, s.keys.list, s.keys.suspects, s.keys.control)
		}
		reply, err := evalOn(ctx, src, ScriptDepth, keys, []any{now.Unix(), statsLife})
		return ints(reply, err, len(page))
	})
}

// Depth is how many tasks were pending at most, as far as workers have looked, from a time on.
type Depth struct {
	At      time.Time
	Pending int
}

// Depths reads what is kept of one grain, in no order.
func (s *Store) Depths(ctx context.Context, g Grain) ([]Depth, error) {
	ring := &depthRings[g]
	args := redis.Args{s.keys.depths}
	for i := range ring.fields {
		args = args.Add(ring.mark + strconv.FormatInt(i, 10))
	}
	texts, err := redis.Strings(s.do(ctx, "HMGET", args...))
	if err != nil {
		return nil, fmt.Errorf("delayed: depths: %w", err)
	}
	var all []Depth
	for _, text := range texts {
		head, list, _ := strings.Cut(text, ":")
		number, err := strconv.ParseInt(head, 10, 32)
		if err != nil {
			continue // there is none, or another program has written it
		}
		begin := time.Unix(0, 0).UTC().Add(time.Duration(number*ring.steps) * ring.step)
		for i, word := range strings.SplitN(list, ",", int(ring.steps)+1) {
			n, err := strconv.Atoi(word)
			if word != "" && (err != nil || n < 0) || i >= int(ring.steps) {
				continue // nobody has looked
			}
			all = append(all, Depth{begin.Add(time.Duration(i) * ring.step), n})
		}
	}
	return all, nil
}
