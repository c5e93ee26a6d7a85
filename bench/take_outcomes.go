package main

import (
	"time"

	"github.com/gomodule/redigo/redis"
)

// outcomesTable compares tasks that do not simply succeed.
const outcomesTable = "outcomes"

// Rows of outcomesTable.
const (
	retriedRow  = "fails once, then succeeds"
	waitingRow  = "fails once, waits 1 ms, then succeeds"
	archivedRow = "fails and is archived"
	snoozedRow  = "is snoozed until tomorrow"
	parkedRow   = "is parked"
	releasedRow = "is released from the parked ones and run"
)

// filed are the tasks that end in a sorted set of Redis: their row, their form, the peers that file them, and the set
// in which delayed does. Archived ones of asynq are in asynqArchive.
var filed = []struct {
	row, form string
	peers     []string
	set       string
}{
	{archivedRow, "failing", twoPeers, "_archived"},
	{snoozedRow, "snoozed", self, "_scheduled"},
	{parkedRow, "parked", self, "_parked"},
}

const asynqArchive = "asynq:{default}:archived"

// takeRetried measures from a worker's start until n tasks have succeeded, each of which fails once.
func takeRetried(row, form string, n int) func(*bed) error {
	return func(b *bed) error {
		n := b.tasks(n, 500)
		if err := b.fillForm(form, n); err != nil {
			return err
		}
		return b.recordRun(row, n, &request{RetryNow: true})
	}
}

// recordRun measures from the start of a worker until it has run n tasks.
func (b *bed) recordRun(row string, n int, r *request) error {
	worker, err := b.driver()
	if err != nil {
		return err
	}
	r.Op, r.N, r.Concurrency = "work", n, baseConcurrency
	a, err := worker.do(r)
	if err != nil {
		return err
	}
	b.record(outcomesTable, row, perSecond, false, float64(n)/a.Seconds)
	return nil
}

// takeFiled measures from a worker's start until n tasks are in a set. Parked tasks are then run by a worker that knows
// their function.
func takeFiled(row, form, set string, n int) func(*bed) error {
	return func(b *bed) error {
		n := b.tasks(n, 500)
		if err := b.fillForm(form, n); err != nil {
			return err
		}
		conn, err := redis.Dial("tcp", b.server.addr)
		if err != nil {
			return err
		}
		defer conn.Close()
		worker, err := b.driver()
		if err != nil {
			return err
		}
		key := pendingKey(0) + set
		if b.peer.name == "asynq" {
			key = asynqArchive
		}
		start := time.Now()
		if _, err := worker.do(&request{Op: "work", Concurrency: baseConcurrency}); err != nil {
			return err
		}
		if err := until("the tasks were filed", func() (bool, error) {
			have, err := redis.Int(conn.Do("ZCARD", key))
			return have == n, err
		}); err != nil {
			return err
		}
		b.record(outcomesTable, row, perSecond, false, float64(n)/time.Since(start).Seconds())
		if row != parkedRow {
			return nil
		}
		worker.close()
		return b.recordRun(releasedRow, n, &request{Parked: true})
	}
}

// fillForm makes n tasks of a form pending.
func (b *bed) fillForm(form string, n int) error {
	producer, err := b.driver()
	if err != nil {
		return err
	}
	_, err = producer.do(&request{Op: "enqueue", N: n, Producers: paceCallers, Form: form})
	return err
}

// outcomeScenarios measure each outcome. asynq neither snoozes nor parks.
func outcomeScenarios() []scenario {
	const n = 60_000
	s := []scenario{
		{name: "outcome retried", peers: twoPeers, take: takeRetried(retriedRow, "retried", n)},
		{name: "outcome waiting", peers: twoPeers, take: takeRetried(waitingRow, "waiting", n)},
	}
	for _, f := range filed {
		s = append(s, scenario{name: "outcome " + f.form, peers: f.peers, take: takeFiled(f.row, f.form, f.set, n)})
	}
	return s
}

// outcomeAims are the aims of the outcomes.
func outcomeAims() []aim {
	var all []aim
	for _, row := range []string{retriedRow, waitingRow} {
		all = append(all, aim{
			text:  "a task " + row + ": at least 20 times asynq",
			table: outcomesTable, row: row, figure: perSecond, peer: "asynq", least: 20,
		})
	}
	for _, row := range []string{archivedRow, snoozedRow, parkedRow, releasedRow} {
		all = append(all, aim{
			text:  "a task " + row + ": at least 100,000 a second",
			table: outcomesTable, row: row, figure: perSecond, least: 100_000,
		})
	}
	return all
}
