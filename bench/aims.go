package main

import (
	"fmt"
	"strings"
)

// aim is a goal for delayed: a ratio to a peer in the same run, or a value of its own.
type aim struct {
	text               string
	table, row, figure string
	peer               string  // compared with this one; "" is by itself
	least, most        float64 // of the ratio, or of the value; 0 is no bound
}

const whole = "worker and server CPU [s per 100,000]"

var aims = append([]aim{
	{
		text: "drain, AOF off: at least 30 times asynq", table: "aof", row: "drain, AOF off", figure: perSecond,
		peer: "asynq", least: 30,
	},
	{
		text: "drain, AOF everysec: at least 30 times asynq", table: "aof", row: "drain, AOF everysec",
		figure: perSecond,
		peer:   "asynq", least: 30,
	},
	{
		text: "drain, AOF always: at least 60 times asynq", table: "aof", row: "drain, AOF always", figure: perSecond,
		peer: "asynq", least: 60,
	},
	{
		text: "drain, AOF off: at least 0.9 of the ceiling", table: "aof", row: "drain, AOF off", figure: perSecond,
		peer: "ceiling", least: 0.9,
	},
	{
		text: "drain, AOF everysec: at least 0.9 of the ceiling", table: "aof", row: "drain, AOF everysec",
		figure: perSecond, peer: "ceiling", least: 0.9,
	},
	{
		text: "drain, AOF always: at least 0.9 of the ceiling", table: "aof", row: "drain, AOF always",
		figure: perSecond,
		peer:   "ceiling", least: 0.9,
	},
	{
		text: "drain, 10 KiB a task: at least 0.8 of the ceiling", table: "drain", row: "payload 10 KiB",
		figure: perSecond, peer: "ceiling", least: 0.8,
	},
	{
		text: "worker and server CPU per task: at most 1.15 of the ceiling's", table: "cost", row: "draining",
		figure: whole, peer: "ceiling", most: 1.15,
	},
	{
		text: "enqueue, 64 producers: at least 0.6 of the ceiling", table: "enqueue", row: "64 producers",
		figure: perSecond, peer: "ceiling", least: 0.6,
	},
	{
		text: "enqueue, 256 producers: at least 0.6 of the ceiling", table: "enqueue", row: "256 producers",
		figure: perSecond, peer: "ceiling", least: 0.6,
	},
	{
		text: "enqueue, 1,000 a call: at least 0.6 of the ceiling", table: "enqueue", row: "1,000 a call",
		figure: perSecond, peer: "ceiling", least: 0.6,
	},
	{
		text: "one blocking producer, median of a call: at most 1.4 times a bare pair of RPUSH", table: "enqueue",
		row: "1 producer", figure: "a call, p50 [µs]", peer: "ceiling", most: 1.4,
	},
	{
		text: "idle wake-up, p50: at most 1.8 times a bare BLPOP and claim", table: latencyTable, row: "idle",
		figure: "p50 [ms]", peer: "ceiling", most: 1.8,
	},
	{
		text: "latency at 50 % load, p99: at most 3 times the ceiling under the same load", table: latencyTable,
		row: "50 % of capacity", figure: "p99 [ms]", peer: "ceiling", most: 3,
	},
	{
		text: "scheduled tasks on an idle worker, lateness p99: below 20 ms", table: latencyTable, row: latenessRow,
		figure: "p99 [ms]", most: 20,
	},
	{
		text: "100,000 scheduled tasks due within one second, lateness p99: below 1 s", table: latencyTable,
		row:    burstRow,
		figure: "p99 [ms]", most: 1000,
	},
	{
		text: "wait of a short task while an executor is free, p99: below 50 ms", table: "fairness", row: fairnessRow,
		figure: "wait while an executor is free, p99 [ms]", most: 50,
	},
	{
		text: "the same, longest: at most 250 ms", table: "fairness", row: fairnessRow,
		figure: "wait while an executor is free, max [ms]", most: 250,
	},
	{
		text: "worker and server CPU per task: at most a twelfth of asynq's", table: "cost", row: "draining",
		figure: whole, peer: "asynq", most: 1.0 / 12,
	},
	{text: "a pending task: at most 110 bytes", table: "cost", row: "a pending task", figure: "bytes", most: 110},
	{
		text: "EVALSHA per task when draining: at most 0.03", table: "cost", row: "draining",
		figure: "EVALSHA per task",
		most:   0.03,
	},
	{
		text: "allocations per task in the worker: at most 5", table: "cost", row: "draining",
		figure: "allocations per task in the worker", most: 5,
	},
	{
		text: "a waiting unique task: at most 300 bytes", table: "memory", row: "100,000 unique", figure: perTask,
		most: 300,
	},
	{
		text: "a scheduled task: at most 200 bytes", table: "memory", row: "100,000 scheduled", figure: perTask,
		most: 200,
	},
}, append(optionAims(), outcomeAims()...)...)

// verdict says whether delayed reached an aim.
type verdict struct {
	aim
	found   spread
	reached bool
}

// aimsOf returns the verdicts on those aims that were measured.
func aimsOf(r *results) []verdict {
	var verdicts []verdict
	for _, a := range aims {
		f := r.find(a.table, a.row, a.figure)
		if f == nil || len(f.Values["delayed"]) == 0 {
			continue
		}
		found := spreadOf(f.Values["delayed"])
		if a.peer != "" {
			var ok bool
			if found, ok = f.ratio("delayed", a.peer); !ok {
				continue
			}
		}
		if strings.HasSuffix(a.figure, "max [ms]") {
			found.Middle = found.High // the middle value says little: take the longest of all rounds
		}
		verdicts = append(verdicts,
			verdict{a, found, (a.least == 0 || found.Middle >= a.least) && (a.most == 0 || found.Middle <= a.most)})
	}
	if v, ok := flatness(r); ok {
		verdicts = append(verdicts, v)
	}
	return verdicts
}

// flatness compares the cost of claims and acknowledgements with few tasks pending and with many.
func flatness(r *results) (verdict, bool) {
	var middles []float64
	for _, f := range r.of(growthTable) {
		if f.Measure == scriptTime && strings.HasSuffix(f.Row, " pending") {
			middles = append(middles, spreadOf(f.Values["delayed"]).Middle)
		}
	}
	if len(middles) < 2 {
		return verdict{}, false
	}
	s := spreadOf(middles)
	s.Middle = s.High / s.Low // largest to smallest of all sizes
	return verdict{aim{text: "claim and acknowledgement, time within the server per task: within 10 % for any number " +
		"of pending tasks", most: 1.1}, spread{s.Middle, s.Middle, s.Middle}, s.Middle <= 1.1}, true
}

func aimsTable(r *results) string {
	var b strings.Builder
	b.WriteString("| aim | found (range of the rounds) | reached |\n|---|---:|---|\n")
	for _, v := range aimsOf(r) {
		reached := "yes"
		if !v.reached {
			reached = "**no**"
		}
		text := number(v.found.Middle)
		if v.found.Low != v.found.High {
			text += fmt.Sprintf(" (%s–%s)", number(v.found.Low), number(v.found.High))
		}
		fmt.Fprintf(&b, "| %s | %s | %s |\n", v.text, text, reached)
	}
	return b.String()
}
