package redisstore

import (
	"context"
)

// Ended are claims whose tasks are done.
type Ended struct {
	Tokens  []string // at most MaxTokens
	Batches []uint64 // batches whose last claim is among Tokens
	// Pulse is the value of the heartbeat under which all of them stood last. While Redis has that value, none is lost.
	Pulse string
}

// append adds the arguments that ack and claim share.
func (e *Ended) append(args []any) []any {
	args = append(args, e.Pulse)
	return appendAll(appendBatches(args, e.Batches), e.Tokens)
}

// answers converts the reply of ack and claim: for each claim, whether it stood; nil: all did.
func (e *Ended) answers(reply any) ([]bool, error) {
	if _, all := reply.(int64); all {
		return nil, nil
	}
	return answers(reply, nil, len(e.Tokens))
}

// Ack ends claims whose tasks are done, and adds lost to the day's count of lost claims. It reports for each claim
// whether it stood; nil: all did. It may be repeated freely, as all ends of a claim may.
func (s *Store) Ack(ctx context.Context, worker string, e Ended, lost int) ([]bool, error) {
	args := make([]any, 0, 4+len(e.Batches)+len(e.Tokens))
	args = append(args, statsLife, lost)
	args = e.append(args)
	keys := []string{s.keys.processing + worker, s.keys.claims + worker, s.StatsKey(), s.keys.heartbeat + worker}
	reply, err := s.eval(ctx, "ack", keys, args...)
	if err != nil {
		return nil, err
	}
	return e.answers(reply)
}

// Release gives claimed messages back unchanged: to the front or to the end of a queue.
func (s *Store) Release(
	ctx context.Context, worker string, batches []uint64, tokens []string, to *Store, front bool,
) ([]bool, error) {
	where := "back"
	if front {
		where = "front"
	}
	args := appendAll(appendBatches([]any{where}, batches), tokens)
	keys := []string{s.keys.processing + worker, s.keys.claims + worker, to.keys.list, to.keys.noti}
	reply, err := s.eval(ctx, "release", keys, args...)
	return answers(reply, err, len(tokens))
}

// channel returns the channel on which to publish the end of a task, "" if it is not awaited.
func (s *Store) channel(id string, awaited bool) string {
	if !awaited {
		return ""
	}
	return s.keys.endedOf(id)
}

func appendBatches(args []any, batches []uint64) []any {
	return appendAll(append(args, len(batches)), batches)
}
