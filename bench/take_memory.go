package main

import "errors"

// takeMemory measures server and worker with n tasks pending.
func takeMemory(n int, row string) func(*bed) error {
	return func(b *bed) error {
		n := max(1000, int(float64(n)*b.scale)) // as many for each peer
		producer, err := b.driver()
		if err != nil {
			return err
		}
		worker, err := b.driver()
		if err != nil {
			return err
		}
		before, err := b.state()
		if err != nil {
			return err
		}
		if err := b.fill(producer, n, 0, 0); err != nil {
			return err
		}
		after, err := b.state()
		if err != nil {
			return err
		}
		b.record("memory", row, "server, used [MiB]", true, after.since(before).memory/(1<<20))
		b.record("memory", row, "server, resident [MiB]", true, after.resident/(1<<20))
		some := max(500, int(20_000*b.scale))
		if err := worker.begin(&request{
			Op: "work", N: some,
			Concurrency: b.peer.executors(baseConcurrency),
		}); err != nil {
			return err
		}
		if _, err := worker.receive(); err != nil {
			return err
		}
		b.record("memory", row, "worker, resident [MiB]", true, treeRSS(worker.cmd.Process.Pid)/(1<<20))
		return nil
	}
}

// perTask is the figure for the memory that Redis uses for each task that waits.
const perTask = "server, used by a task [bytes]"

// takeWaiting measures server and worker while n tasks of a form wait. See former.
func takeWaiting(form string, n int, row string) func(*bed) error {
	return func(b *bed) error {
		n := max(500, int(float64(n)*b.scale))
		producer, err := b.driver()
		if err != nil {
			return err
		}
		worker, err := b.driver()
		if err != nil {
			return err
		}
		before, err := b.state()
		if err != nil {
			return err
		}
		if _, err := producer.do(&request{Op: "enqueue", N: n, Producers: 64, Form: form}); err != nil {
			return err
		}
		after, err := b.state()
		if err != nil {
			return err
		}
		b.record("memory", row, "server, used [MiB]", true, after.since(before).memory/(1<<20))
		b.record("memory", row, "server, resident [MiB]", true, after.resident/(1<<20))
		b.record("memory", row, perTask, true, after.since(before).memory/float64(n))
		// One pending task runs, so that the worker is known to have started.
		if err := b.fill(producer, 1, 0, 0); err != nil {
			return err
		}
		_, err = worker.do(&request{Op: "work", N: 1, Concurrency: b.peer.executors(baseConcurrency)})
		if errors.Is(err, errNone) {
			return nil
		}
		b.record("memory", row, "worker, resident [MiB]", true, treeRSS(worker.cmd.Process.Pid)/(1<<20))
		return err
	}
}
