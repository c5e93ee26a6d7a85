package main

// Names of measures that several tables share.
const (
	perSecond  = "tasks/s"
	callMiddle = "a call, p50 [µs]"
	callTail   = "a call, p99 [µs]"
)

// takeEnqueue lets producers enqueue n tasks one by one, each waiting until its own is accepted.
func takeEnqueue(table, row string, producers, n int) func(*bed) {
	return func(b *bed) {
		d := b.driver()
		warm(d, producers, "")
		n := b.tasks(n, 500)
		a := d.do(&request{Op: "enqueue", N: n, Producers: producers, Latency: producers == 1})
		b.record(table, row, perSecond, false, float64(n)/a.Seconds)
		if producers == 1 {
			b.record(table, row, callMiddle, true, quantile(a.Latencies, 0.5))
			b.record(table, row, callTail, true, quantile(a.Latencies, 0.99))
		}
	}
}

// warm opens the connections of all producers and makes the server load scripts. It returns how many tasks it enqueued.
func warm(d *program, producers int, form string) int {
	n := max(10, 2*producers)
	d.do(&request{Op: "enqueue", N: n, Producers: producers, Form: form})
	return n
}

// takeBatch enqueues n tasks by the peer's own call for many, 1,000 at a time.
func takeBatch(table, row string, n int) func(*bed) {
	return func(b *bed) {
		d := b.driver()
		d.do(&request{Op: "enqueue", N: 1000, Batch: 1000})
		n := b.tasks(n, 2000)
		a := d.do(&request{Op: "enqueue", N: n, Batch: 1000})
		b.record(table, row, perSecond, false, float64(n)/a.Seconds)
	}
}

// takePending measures how much memory of the server pending tasks take, and what enqueueing one costs the server.
func takePending(b *bed) {
	const producers = 16
	if !b.redis() {
		return
	}
	d := b.driver()
	warm(d, producers, "")
	n := b.tasks(100_000, 1000)
	before := b.state()
	d.do(&request{Op: "enqueue", N: n, Producers: producers})
	server, row := b.state().since(before), "enqueueing"
	b.record("cost", "a pending task", "bytes", true, server.memory/float64(n))
	b.record("cost", row, "Redis commands per task", true, server.commands()/float64(n))
	b.record("cost", row, "server CPU [s per 100,000]", true, server.cpu/float64(n)*1e5)
}

func producersRow(n int) string {
	if n == 1 {
		return "1 producer"
	}
	return count(n) + " producers"
}

// optionsTable compares tasks that are enqueued with options.
const optionsTable = "options"

// forms are the kinds of tasks in optionsTable, which a former enqueues:
//   - scheduled: due tomorrow, each at another ms
//   - unique: of function and arguments, none of which repeats
//   - debounced: of 1,000 keys in turn, so that most replace another task
//   - grouped: of 10 groups in turn
//
// Other tables use others:
//   - failing: its one run fails
//   - retried: fails on its first run, and is to be run again at once
//   - gathered: of one group, whose combined calls have 5,000 calls
var forms = []string{"scheduled", "unique", "debounced", "grouped"}

// debounceKeys and groupKeys are how many keys the debounced and the grouped tasks have.
const (
	debounceKeys = 1000
	groupKeys    = 10
)

// takeForm lets producers enqueue n tasks of a form one by one, each waiting until its own is accepted.
func takeForm(form string, producers, n int) func(*bed) {
	return func(b *bed) {
		d := b.driver()
		first := warm(d, producers, form)
		n := b.tasks(n, 500)
		a := d.do(&request{Op: "enqueue", N: n, Producers: producers, Form: form, First: first})
		b.record(optionsTable, form+", "+producersRow(producers), perSecond, false, float64(n)/a.Seconds)
	}
}
