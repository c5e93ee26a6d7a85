package main

import "time"

// drain describes the work that takeDrain gives a worker.
type drain struct {
	n           int
	concurrency int           // 0 is that of the base point
	size        int           // of the text
	sleep       time.Duration // of the handler
	table, row  string        // where the rate is shown
	cost        bool          // record what it cost as well
}

// takeDrain measures from a worker's start to the n-th call of its handler, with n tasks pending at the start.
func takeDrain(w drain) func(*bed) {
	return func(b *bed) {
		n, worker := b.tasks(w.n, 1000), b.driver()
		b.fill(b.driver(), n, w.size)
		r := &request{Op: "work", N: n, Concurrency: w.concurrency, Sleep: w.sleep}
		if r.Concurrency == 0 {
			r.Concurrency = b.peer.executors(baseConcurrency)
		}
		before := b.state()
		a := worker.do(r)
		server := b.state().since(before)
		b.record(w.table, w.row, perSecond, false, float64(n)/a.Seconds)
		if !w.cost {
			return
		}
		record := func(measure string, value float64) { b.record("cost", "draining", measure, true, value/float64(n)) }
		record("worker CPU [s per 100,000]", a.CPU*1e5)
		record("server CPU [s per 100,000]", server.cpu*1e5)
		record("worker and server CPU [s per 100,000]", (a.CPU+server.cpu)*1e5)
		if b.redis() {
			calls, _ := server.scripts()
			record("Redis commands per task", server.commands())
			record("EVALSHA per task", calls)
		}
		record("allocations per task in the worker", float64(a.Mallocs))
	}
}

// takeStart measures how long a worker needs from its start to the first call, with one task pending.
func takeStart(b *bed) {
	b.fill(b.driver(), 1, 0)
	a := b.driver().do(&request{Op: "work", N: 1, Concurrency: baseConcurrency})
	b.record("start", "a worker, from its start to its first call", "[ms]", true, a.Seconds*1000)
}

func concurrencyRow(n int) string { return "concurrency " + count(n) }

// takeRetried measures from a worker's start until n tasks have succeeded, each of which fails once.
func takeRetried(row string, n int) func(*bed) {
	return func(b *bed) {
		n := b.tasks(n, 500)
		b.fillForm("retried", n)
		a := b.driver().do(&request{Op: "work", N: n, Concurrency: baseConcurrency, RetryNow: true})
		b.record("outcomes", row, perSecond, false, float64(n)/a.Seconds)
	}
}

// takeFailing measures from a worker's start until n tasks, whose only run fails, are in the archive.
func takeFailing(row string, n int) func(*bed) {
	return func(b *bed) {
		n, archive := b.tasks(n, 500), queueName+"_archived"
		if b.peer.name == "asynq" {
			archive = "asynq:{default}:archived"
		}
		b.fillForm("failing", n)
		worker, start := b.driver(), time.Now()
		worker.do(&request{Op: "work", Concurrency: baseConcurrency})
		until("the tasks were archived", func() bool { return b.do("ZCARD", archive) == int64(n) })
		b.record("outcomes", row, perSecond, false, float64(n)/time.Since(start).Seconds())
	}
}

// fillForm makes n tasks of a form pending.
func (b *bed) fillForm(form string, n int) {
	b.driver().do(&request{Op: "enqueue", N: n, Producers: manyProducers, Form: form})
}
