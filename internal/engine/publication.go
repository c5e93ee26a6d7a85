package engine

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/godelayed/delayed/internal/loop"
	"github.com/godelayed/delayed/internal/redisstore"
)

// publication is what a worker lets others read of it on the queues of one slot: its functions, and what it does. It is
// for one goroutine.
type publication struct {
	lanes  []*lane
	worker string
	log    loop.Journal
	// listing returns the JSON of the registered functions, and a value that changes with it; nil: publish nothing.
	listing func() ([]byte, any)
	// status returns a function that gives the JSON of what the worker does on a lane; nil: publish none.
	status func(time.Time) func(*lane) []byte

	published map[*lane]any    // the value of listing that Redis has; nil: none
	statuses  map[*lane]string // the status that Redis has; "": none
	failing   loop.Complaints  // about functions that could not be published
}

// publish writes the worker's functions to queues where Redis does not have the present ones. No task depends on it;
// the next heartbeat tries again.
func (p *publication) publish(ctx context.Context) {
	if p.listing == nil {
		return
	}
	listing, state := p.listing()
	var untold error
	var lanes []*lane
	var stores []*redisstore.Store
	for _, l := range p.lanes {
		if p.published[l] != state {
			lanes, stores = append(lanes, l), append(stores, l.store)
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
			p.published[lanes[i]] = state
		}
		untold = cmp.Or(untold, err)
	}
	if untold == nil {
		p.log.Relief(&p.failing, "functions of this worker published")
	}
}

// forgetPublished makes this beat publish anew what Redis has lost of a lane.
func (p *publication) forgetPublished(l *lane) {
	delete(p.published, l)
	delete(p.statuses, l)
}

// publishStatus writes what the worker does, where that is not what Redis has.
func (p *publication) publishStatus(ctx context.Context) {
	if p.status == nil {
		return
	}
	var lanes []*lane
	var stores []*redisstore.Store
	var statuses [][]byte
	statusOf := p.status(time.Now())
	for _, l := range p.lanes {
		if status := statusOf(l); string(status) != p.statuses[l] {
			lanes, stores, statuses = append(lanes, l), append(stores, l.store), append(statuses, status)
		}
	}
	for i, a := range redisstore.PublishStatusEach(ctx, stores, p.worker, statuses) {
		if a.Value { // otherwise the next heartbeat tries again
			p.statuses[lanes[i]] = string(statuses[i])
		}
	}
}
