package redisstore

import "time"

// Redis does nothing else while a script runs, so scripts are given as much as takes them a few ms at most. bench/
// measures that: go run . worst.
const (
	// MoveBatch bounds the tasks that one script makes pending.
	MoveBatch = 200
	// ParkedPage bounds the parked tasks that are read at a time.
	ParkedPage = 100
)

// MaxListPage bounds how many parked or archived tasks one call reads.
const MaxListPage = 1000

// lookEvery is how often a caller that waits for a task looks by itself whether it has ended.
const lookEvery = 5 * time.Second

const (
	// slotPage bounds the queues of one slot that one script looks at.
	slotPage = 200
	// SweepPage bounds the claims that one script takes.
	SweepPage = 50
	// RepairPage bounds the notifications that one script adds.
	RepairPage = 1000
	// TrimPage bounds the tasks that one script deletes or condemns.
	TrimPage = 100
)

// MaxUnparked bounds the parked tasks that one script looks at.
const MaxUnparked = 100

const (

	// ShortestWait is what remains of it on connections that break off earlier.
	ShortestWait = 500 * time.Millisecond
)
