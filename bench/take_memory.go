package main

// scriptTime is a measure of the claims and acknowledgements in a drain.
const scriptTime = "scripts, time within the server [µs per task]"

// takeMemory measures server and worker while n tasks of a form wait; "" is pending tasks.
func takeMemory(row, form string, n int) func(*bed) {
	return func(b *bed) {
		n := max(1000, int(float64(n)*b.scale)) // as many for each peer
		producer, worker := b.driver(), b.driver()
		before := b.state()
		if form == "" {
			b.fill(producer, n, 0)
		} else {
			producer.do(&request{Op: "enqueue", N: n, Producers: 64, Form: form})
		}
		used := b.state().since(before).memory
		b.record("memory", row, "server, used [MiB]", true, used/(1<<20))
		b.record("memory", row, "server, used by a task [bytes]", true, used/float64(n))
		some := max(1, int(20_000*b.scale)) // so that the worker is known to have started
		if form != "" {
			b.fill(producer, some, 0)
		}
		worker.do(&request{Op: "work", N: some, Concurrency: b.peer.executors(baseConcurrency)})
		b.record("memory", row, "worker, resident [MiB]", true, treeRSS(worker.cmd.Process.Pid)/(1<<20))
	}
}

// takeGrowth drains n tasks while many more are pending.
func takeGrowth(pending, n int) func(*bed) {
	return func(b *bed) {
		n, pending := b.tasks(n, 2000), b.tasks(pending, 1000)
		b.fill(b.driver(), pending+n, 0)
		before := b.state()
		a := b.driver().do(&request{Op: "work", N: n, Concurrency: baseConcurrency})
		_, micros := b.state().since(before).scripts()
		row := count(pending) + " pending"
		// The worker has claimed a few tasks more than it has run, which counts for the scripts.
		b.record("growth", row, scriptTime, true, micros/float64(n))
		b.record("growth", row, perSecond, false, float64(n)/a.Seconds)
	}
}
