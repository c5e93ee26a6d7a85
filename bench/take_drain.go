package main

// drain describes the work that takeDrain gives a worker.
type drain struct {
	n           int
	concurrency int    // 0 is 50
	size        int    // of the text
	handler     string // as in a request
	every       int    // after how many tasks a long one follows; 0: never
	rows        []drainRow
	cost        bool // record what it cost as well
}

// drainRow is a row in which the rate is shown.
type drainRow struct{ table, row string }

// takeDrain measures from a worker's start to the n-th call of its handler, with n tasks pending at the start.
func takeDrain(w drain) func(*bed) error {
	return func(b *bed) error {
		producer, err := b.driver()
		if err != nil {
			return err
		}
		worker, err := b.driver()
		if err != nil {
			return err
		}
		n := b.tasks(w.n, 1000)
		if err := b.fill(producer, n, w.size, w.every); err != nil {
			return err
		}
		before, err := b.state()
		if err != nil {
			return err
		}
		concurrency := w.concurrency
		if concurrency == 0 {
			concurrency = b.peer.executors(baseConcurrency)
		}
		a, err := worker.do(&request{Op: "work", N: n, Concurrency: concurrency, Handler: w.handler})
		if err != nil {
			return err
		}
		after, err := b.state()
		if err != nil {
			return err
		}
		for _, r := range w.rows {
			b.record(r.table, r.row, perSecond, false, float64(n)/a.Seconds)
		}
		if w.cost {
			recordCost(b, a, after.since(before), n)
		}
		return nil
	}
}

// baseConcurrency is that of workers at the base point.
const baseConcurrency = 50

func recordCost(b *bed, a *response, server *snapshot, n int) {
	per100k := 1e5 / float64(n)
	b.record("cost", "draining", "worker CPU [s per 100,000]", true, a.CPU*per100k)
	b.record("cost", "draining", "server CPU [s per 100,000]", true, server.cpu*per100k)
	b.record("cost", "draining", "worker and server CPU [s per 100,000]", true, (a.CPU+server.cpu)*per100k)
	if b.redis() {
		calls, _ := server.scripts()
		b.record("cost", "draining", "Redis commands per task", true, server.commands()/float64(n))
		b.record("cost", "draining", "EVALSHA per task", true, calls/float64(n))
	}
	if a.Mallocs > 0 {
		b.record("cost", "draining", "allocations per task in the worker", true, float64(a.Mallocs)/float64(n))
	}
}

// takeStart measures how long a worker needs from its start to the first call, with one task pending.
func takeStart(b *bed) error {
	producer, err := b.driver()
	if err != nil {
		return err
	}
	if err := b.fill(producer, 1, 0, 0); err != nil {
		return err
	}
	worker, err := b.driver()
	if err != nil {
		return err
	}
	a, err := worker.do(&request{Op: "work", N: 1, Concurrency: b.peer.executors(baseConcurrency)})
	if err != nil {
		return err
	}
	b.record("start", "a worker, from its start to its first call", "[ms]", true, a.Seconds*1000)
	return nil
}

func concurrencyRow(n int) string { return "concurrency " + count(n) }
