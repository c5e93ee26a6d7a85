// Package faultnet breaks the network between a Redis client and its server on purpose: in the client, with a Dialer
// whose connections lose and delay requests and replies, or between processes, with a Proxy. It is for tests only.
//
// Both work on requests. A request is what the client writes between two replies, so a pipeline that is flushed as a
// whole is one.
package faultnet

import (
	"fmt"
	"math/rand/v2"
	"sync/atomic"
)

// Fault is what happens to a request and its reply.
type Fault uint8

// The faults. The worst of them for a client is DropReply: the server has done what was asked, and nobody hears of it.
const (
	None         Fault = iota
	DropRequest        // the connection is closed before the request reaches the server
	DropReply          // the server carries the request out; its reply is discarded and the connection closed
	DelayRequest       // the request reaches the server late
	DelayReply         // the reply reaches the client late
	faults
)

// String names the fault.
func (f Fault) String() string {
	if f >= faults {
		return fmt.Sprintf("Fault(%d)", uint8(f))
	}
	return [...]string{"none", "dropped request", "dropped reply", "delayed request", "delayed reply"}[f]
}

// Plan decides what happens to a request, of which it sees the first bytes as the client wrote them: all of it if it is
// shorter than 4 KiB. It is called by one goroutine at a time and must not keep the bytes.
type Plan func(request []byte) Fault

// Rates are the shares of requests that meet a fault, each from 0 to 1, together at most 1.
type Rates struct {
	DropReply   float64
	DropRequest float64
	Delay       float64 // one half delays the request, the other its reply
}

// Random returns a plan that draws faults from a generator with that seed.
func Random(seed uint64, rates Rates) Plan {
	random := rand.New(rand.NewPCG(seed, 0))
	return func([]byte) Fault {
		x := random.Float64()
		for _, share := range []struct {
			rate  float64
			fault Fault
		}{
			{rates.DropReply, DropReply},
			{rates.DropRequest, DropRequest},
			{rates.Delay / 2, DelayRequest},
			{rates.Delay / 2, DelayReply},
		} {
			if x < share.rate {
				return share.fault
			}
			x -= share.rate
		}
		return None
	}
}

// Once returns a plan for the first request that match accepts; all others pass. A nil match accepts any.
func Once(fault Fault, match func(request []byte) bool) Plan {
	done := false
	return func(request []byte) Fault {
		if done || match != nil && !match(request) {
			return None
		}
		done = true
		return fault
	}
}

// Counts is how many requests passed through and what happened to them. A fault is counted when it has happened: a
// reply that never comes is not dropped.
type Counts struct {
	Connections     int64
	Requests        int64
	DroppedRequests int64
	DroppedReplies  int64
	DelayedRequests int64
	DelayedReplies  int64
}

// String lists the counts.
func (c Counts) String() string {
	return fmt.Sprintf("%d connections, %d requests, dropped %d requests and %d replies, delayed %d requests and %d "+
		"replies",
		c.Connections, c.Requests, c.DroppedRequests, c.DroppedReplies, c.DelayedRequests, c.DelayedReplies)
}

// counters collects Counts.
type counters struct {
	connections, requests atomic.Int64
	byFault               [faults]atomic.Int64
}

func (c *counters) counts() Counts {
	return Counts{
		Connections: c.connections.Load(), Requests: c.requests.Load(),
		DroppedRequests: c.byFault[DropRequest].Load(), DroppedReplies: c.byFault[DropReply].Load(),
		DelayedRequests: c.byFault[DelayRequest].Load(), DelayedReplies: c.byFault[DelayReply].Load(),
	}
}
