package engine

import (
	"context"
	"time"
)

// dropCanceled ends the claims of one batch whose tasks were cancelled before, and returns the others. If Redis does
// not answer it gives all of them back. While the control hash does not exist it costs nothing, and it asks Redis only
// if the hash has changed.
func (r *receiver) dropCanceled(ctx context.Context, claims []*Claim) []*Claim {
	b := claims[0].batch
	if b.version == 0 {
		return claims
	}
	l := claims[0].lane
	for _, c := range claims {
		c.msg, _ = c.parse() // for the id; receive parses again and handles the error
	}
	revoked, err := r.canceledAmong(ctx, l, b.version, claims)
	if err != nil {
		r.log.With("queue", l.store.Name).Trouble(&l.control.trouble,
			"cannot ask Redis which tasks were canceled; giving them back", err)
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

// canceledAmong reports for each claim whether its task was cancelled; nil: none was.
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
