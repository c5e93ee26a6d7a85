package beat

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/godelayed/delayed/internal/engine/lane"
	"github.com/godelayed/delayed/internal/function"
	"github.com/godelayed/delayed/internal/loop"
	"github.com/godelayed/delayed/internal/redisstore"
)

// publication is what a worker lets others read of it on the queues of one slot: its functions, and what it does. It is
// for one goroutine.
type publication struct {
	lanes     []*lane.Lane
	worker    string
	log       loop.Journal
	Functions *function.Registry // nil: publish nothing of the worker
	Status    *Status

	Published map[*lane.Lane]any    // the value of listing that Redis has; nil: none
	Statuses  map[*lane.Lane]string // the status that Redis has; "": none
	failing   loop.Complaints       // about functions that could not be published
}

// publish writes the worker's functions to queues where Redis does not have the present ones. No task depends on it;
// the next heartbeat tries again.
func (p *publication) publish(ctx context.Context) {
	if p.Functions == nil {
		return
	}
	listing, state := p.Functions.Listing()
	var untold error
	var lanes []*lane.Lane
	var stores []*redisstore.Store
	for _, l := range p.lanes {
		if p.Published[l] != state {
			lanes, stores = append(lanes, l), append(stores, l.Store)
		}
	}
	listings := slices.Repeat([][]byte{listing}, len(lanes))
	for i, a := range redisstore.PublishEach(ctx, stores, p.worker, listings) {
		err := a.Err
		if err != nil && ctx.Err() == nil {
			p.log.Trouble(&p.failing, "cannot publish the functions of this worker; trying again", err)
		}
		if err != nil && !redisstore.IsWrongType(err) {
			return
		}
		if a.Value {
			p.Published[lanes[i]] = state
		}
		untold = cmp.Or(untold, err)
	}
	if untold == nil {
		p.log.Relief(&p.failing, "functions of this worker published")
	}
}

// forgetPublished makes this beat publish anew what Redis has lost of a lane.
func (p *publication) forgetPublished(l *lane.Lane) {
	delete(p.Published, l)
	delete(p.Statuses, l)
}

// publishStatus writes what the worker does, where that is not what Redis has.
func (p *publication) publishStatus(ctx context.Context) {
	if p.Functions == nil {
		return
	}
	var lanes []*lane.Lane
	var stores []*redisstore.Store
	var statuses [][]byte
	now := time.Now()
	all := p.Status.ofWorker(now)
	for _, l := range p.lanes {
		if status := p.Status.ofLane(l, now, all); string(status) != p.Statuses[l] {
			lanes, stores, statuses = append(lanes, l), append(stores, l.Store), append(statuses, status)
		}
	}
	for i, a := range redisstore.PublishStatusEach(ctx, stores, p.worker, statuses) {
		if a.Value { // otherwise the next heartbeat tries again
			p.Statuses[lanes[i]] = string(statuses[i])
		}
	}
}
