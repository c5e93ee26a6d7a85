package engine

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/godelayed/delayed/internal/answer"
	"github.com/godelayed/delayed/internal/redisstore"
)

// remind puts the worker back where Redis has lost it although its heartbeat is there, and makes publish write again
// what is lost of it.
func (h *heartbeat) remind(ctx context.Context) {
	if h.forbidden || ctx.Err() != nil {
		return
	}
	var lanes []*lane
	var stores []*redisstore.Store
	for _, l := range h.lanes {
		if l.confirmed.Load() != nil && !h.unanswered[l] {
			lanes, stores = append(lanes, l), append(stores, l.store)
		}
	}
	if len(lanes) == 0 {
		return
	}
	known, err := redisstore.Known(ctx, &h.link, stores, h.worker)
	if err != nil {
		// The next look asks again.
		if h.forbidden = answer.Forbidden(err); !answer.Is(err) {
			h.link.HangUp()
		}
		h.log.WithError(err).Debug("cannot find out whether Redis has lost this worker")
		return
	}
	for i, l := range lanes {
		if !known[i] {
			h.forgetPublished(l)
		}
	}
}

// publish writes the worker's functions to queues where Redis does not have the present ones. No task depends on it;
// the next heartbeat tries again.
func (h *heartbeat) publish(ctx context.Context) {
	if h.listing == nil {
		return
	}
	listing, state := h.listing()
	var untold error
	var lanes []*lane
	var stores []*redisstore.Store
	for _, l := range h.lanes {
		if h.published[l] != state {
			lanes, stores = append(lanes, l), append(stores, l.store)
		}
	}
	listings := slices.Repeat([][]byte{listing}, len(lanes))
	for i, a := range redisstore.PublishEach(ctx, stores, h.worker, listings) {
		err := a.Err
		if err != nil && ctx.Err() == nil {
			h.log.Trouble(&h.untold, "cannot publish the functions of this worker; trying again", err)
		}
		if err != nil && !redisstore.IsWrongType(err) {
			return
		}
		if a.Value {
			h.published[lanes[i]] = state
		}
		untold = cmp.Or(untold, err)
	}
	if untold == nil {
		h.log.Relief(&h.untold, "functions of this worker published")
	}
}

// forgetPublished makes this beat publish anew what Redis has lost of a lane.
func (h *heartbeat) forgetPublished(l *lane) {
	delete(h.published, l)
	delete(h.statuses, l)
}

// publishStatus writes what the worker does, where that is not what Redis has.
func (h *heartbeat) publishStatus(ctx context.Context) {
	if h.status == nil {
		return
	}
	var lanes []*lane
	var stores []*redisstore.Store
	var statuses [][]byte
	statusOf := h.status(time.Now())
	for _, l := range h.lanes {
		if status := statusOf(l); string(status) != h.statuses[l] {
			lanes, stores, statuses = append(lanes, l), append(stores, l.store), append(statuses, status)
		}
	}
	for i, a := range redisstore.PublishStatusEach(ctx, stores, h.worker, statuses) {
		if a.Value { // otherwise the next heartbeat tries again
			h.statuses[lanes[i]] = string(statuses[i])
		}
	}
}
