package engine

import (
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"

	"github.com/godelayed/delayed/internal/engine/lane"
	"github.com/godelayed/delayed/internal/faultnet"
	"github.com/godelayed/delayed/internal/lifecycle"
	"github.com/godelayed/delayed/internal/redisstore"
	"github.com/godelayed/delayed/internal/wire"
)

// claimMany enqueues n tasks, claims them, and returns them with their messages in order.
func (r *receivingWorker) claimMany(n int) (claims []*lane.Claim, before []string) {
	r.b.T.Helper()
	tasks := make([]*Task, n)
	for i := range tasks {
		tasks[i] = Call(r.f, "x")
	}
	_, err := r.b.q.DelayMany(r.b.T.Context(), tasks...)
	r.b.Must(err)
	before = r.b.List("")
	return r.claim(n), before
}

// cutOff makes the next n calls of a script fail before Redis has them, and counts all calls.
func (r *receivingWorker) cutOff(n int64, script string) *atomic.Int64 {
	made, matches := new(atomic.Int64), calls(redisstore.Scripts[script])
	rdb, _ := r.b.faulty(func(request []byte) faultnet.Fault {
		if matches(request) && made.Add(1) <= n {
			return faultnet.DropRequest
		}
		return faultnet.None
	})
	r.l.Store.Src = rdb.loops
	return made
}

// Tasks keep their order if one of several calls got no answer: later calls wait until it has one.
func TestTasksOfACallWithoutAnswerAreNotOvertaken(t *testing.T) {
	for _, test := range []struct {
		name    string
		outcome lifecycle.Outcome
		list    string
	}{
		{"given back", lifecycle.OutcomeRelease, ""},
		{"forwarded", lifecycle.OutcomeForward, "-py"},
	} {
		t.Run(test.name, func(t *testing.T) {
			r := newReceivingWorker(t, nil)
			f := finisherOf(r.l)
			f.Python = redisstore.NewStore(r.b.rdb.loops, "", r.b.Name+"-py")
			claims, before := r.claimMany(redisstore.MaxTokens + 3)
			for _, c := range claims {
				f.Add(lane.Ending{Claim: c, Outcome: test.outcome})
			}
			made := r.cutOff(1, "release")
			if _, ok := f.Publish(); ok || made.Load() != 1 || len(f.Pending) != len(claims) {
				t.Errorf("%v, %d calls, %d are left, expected 1 call without answer", ok, made.Load(), len(f.Pending))
			}
			if _, ok := f.Publish(); !ok {
				t.Fatal("Redis did not confirm")
			}
			after, err := redis.Strings(r.b.Do("LRANGE", r.b.Name+test.list, 0, -1), nil)
			if err != nil || !slices.Equal(after, before) {
				t.Errorf("%d tasks are pending in another order than the %d before, %v", len(after), len(before), err)
			}
			r.b.Do("DEL", r.b.Name+"-py", r.b.Name+"-py_noti")
		})
	}
}

// While Redis does not answer, each attempt makes one or two calls, however many are to be made: a worker that stops
// could not wait for all of them.
func TestNoMoreCallsWhileRedisDoesNotAnswer(t *testing.T) {
	r := newReceivingWorker(t, nil)
	f := finisherOf(r.l)
	claims, _ := r.claimMany(5 * redisstore.MaxShelved)
	info := (&wire.Info{}).Encode()
	for i, c := range claims {
		outcome := lifecycle.OutcomeRetry
		if i%2 > 0 {
			outcome = lifecycle.OutcomeArchive
		}
		f.Add(lane.Ending{
			Claim: c, Outcome: outcome, Wait: time.Hour, ID: c.Msg.Meta.ID + c.Token, Message: c.Raw, Info: info,
		})
	}
	made := r.cutOff(2, "shelve")
	if _, ok := f.Publish(); ok || made.Load() != 2 || f.Waiting() != len(claims) {
		t.Errorf("%v, %d calls, %d are left, expected 2 calls without answer", ok, made.Load(), f.Waiting())
	}
	made = r.cutOff(1, "ack")
	r.exec.PutDone(r.l, claims[:1])
	if _, ok := f.Publish(); ok || made.Load() != 1 {
		t.Errorf("%v, %d calls, expected 1 call without answer", ok, made.Load())
	}
	if n := r.b.Size("_retry") + r.b.Size("_archived"); n > 0 {
		t.Errorf("%d tasks are filed behind an acknowledgement without answer", n)
	}
	f.Done.TakeDone(r.l)
	if _, ok := f.Publish(); !ok || r.b.Size("_retry")+r.b.Size("_archived") != len(claims) {
		t.Errorf("%v, %d and %d tasks are filed", ok, r.b.Size("_retry"), r.b.Size("_archived"))
	}
}
