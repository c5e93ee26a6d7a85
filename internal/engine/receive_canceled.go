package engine

import (
	"context"
	"time"
)

// dropCanceled ends those of a batch's claims whose tasks were cancelled before they were claimed, and returns the
// others. Their messages are parsed then. It costs nothing as long as nobody uses the control hash, and Redis is asked
// only when something has changed. If it does not answer, all are given back.
func (r *receiver) dropCanceled(ctx context.Context, claims []*Claim) []*Claim {
	b := claims[0].batch
	if b.version == 0 {
		return claims
	}
	l := claims[0].lane
	for _, c := range claims {
		c.msg, _ = c.parse() // who receives it parses it again, and judges
	}
	revoked, err := r.canceledAmong(ctx, l, b.version, claims)
	if err != nil {
		r.log.With("queue", l.store.Name).Trouble(&l.control.trouble,
			"cannot ask which tasks were canceled; giving them back", err)
		l.rest = queueRest{until: time.Now().Add(pausedRest)}
		giveBack(claims)
		return nil
	}
	kept := make([]*Claim, 0, len(claims))
	for i, c := range claims {
		if revoked != nil && revoked[i] {
			r.runner.cancelClaim(c, false)
			continue
		}
		kept = append(kept, c)
	}
	return kept
}

// canceledAmong says which claims' tasks were cancelled; nil for none.
func (r *receiver) canceledAmong(ctx context.Context, l *lane, version int64, claims []*Claim) ([]bool, error) {
	if l.control.version.Load() != version {
		if err := r.readControl(ctx, l); err != nil {
			return nil, err
		}
	}
	l.mu.Lock()
	known := l.revoked
	var revoked []bool
	for i, c := range claims {
		if id := c.msg.Meta.ID; id != "" && known.ids[id] {
			if revoked == nil {
				revoked = make([]bool, len(claims))
			}
			revoked[i] = true
		}
	}
	l.mu.Unlock()
	if !known.partial {
		return revoked, nil
	}
	ids := make([]string, len(claims))
	for i, c := range claims {
		ids[i] = c.msg.Meta.ID
	}
	return l.store.AreRevoked(ctx, ids)
}
