// Package delayedprom shows the queues of package delayed to Prometheus: what they hold, how long tasks wait and run,
// what fails, and what workers do. Its Collector reads Redis when Prometheus asks, through package inspect, so one
// process that exports it shows the queues and workers of all processes. The package is not called prometheus, because
// the programs that use it import the client library of that name:
//
//	ins, err := inspect.New(rdb, inspect.Config{})
//	prometheus.MustRegister(delayedprom.New(ins, delayedprom.Config{}))
//	http.Handle("/metrics", promhttp.Handler())
//
// The files alerts.yml and scaling.yml, rules for Prometheus, and dashboard.json, for Grafana, are in the same folder.
// They also work if several processes export the same queues. The rules of scaling.yml record, for autoscalers, how
// long one handler would need for all pending tasks of a queue: delayed_queue_work_seconds.
//
// # Metrics
//
// All names begin with Config.Namespace. Those of a queue:
//
//   - delayed_tasks{queue,state}: tasks in each state. The state pending includes delayed_suspect_tasks{queue}, tasks
//     that have died with a worker lately.
//   - delayed_queue_latency_seconds{queue}: age of the oldest pending task.
//   - delayed_queue_paused{queue}: 1 if Queue.Pause has paused the queue.
//   - delayed_groups{queue}: groups whose calls wait to be put together.
//   - delayed_outcomes_total{queue,outcome}: what became of tasks, by the names of inspect.Counts. One task may be
//     counted in several, such as processed, failed and retried. They begin anew each day at midnight UTC, which rate
//     and increase take for a restart: they miss what has happened between the last scrape of a day and midnight.
//   - delayed_due_lateness_seconds{queue}: histogram of how late tasks became pending that were scheduled or waited for
//     a retry, by Redis's clock. How long they waited for a worker after that is in delayed_task_wait_seconds, which
//     includes the lateness.
//   - delayed_queue_memory_bytes{queue}: memory that Redis uses for the queue, if Config.Memory is set.
//
// Those of its workers:
//
//   - delayed_workers{queue}: workers that are alive. Legacy workers do not make themselves known.
//   - delayed_worker_slots{queue}: tasks that they can run at a time. A worker of several queues counts in each.
//   - delayed_claims{queue,worker}: tasks that are claimed by workers that are alive or dead.
//   - delayed_long_running_tasks{queue}: handlers that have run for more than a second.
//   - delayed_longest_run_seconds{queue}: how long the longest of them has run, by the clocks of the worker's host and
//     of this one; 0 if there is none.
//
// Those of its functions, by workers in Go and in Python. They begin anew when nothing has run for 90 days.
// What a worker that dies has done since its last heartbeat is missing; delayed_outcomes_total has it:
//
//   - delayed_tasks_run_total{queue,function}: handlers that have returned, or were not called because the
//     arguments do not fit; snoozed tasks count in none of these series.
//   - delayed_tasks_failed_total{queue,function}: of those, the ones that count as failures.
//   - delayed_tasks_archived_total{queue,function}: of the failures, those that are not tried again.
//   - delayed_task_wait_seconds{queue,function}: histogram of how long tasks waited for a worker.
//   - delayed_task_run_seconds{queue,function}: histogram of how long handlers took.
//
// Bounds of the histograms are the powers of two of microseconds from 1.024 ms to 71.6 min, at which the counts in
// Redis are exact. Durations are counted in whole microseconds; one that is equal to a bound counts as above it.
//
// Of each Redis server, in a cluster of each master:
//
//   - delayed_redis_script_seconds{server}: summary of how long scripts ran within the server, where nothing else runs
//     meanwhile, those of other programs included. It counts from the start of the server. The quantiles are those that
//     Redis tracks, from version 7 on: 0.5, 0.99 and 0.999 by default. It takes INFO: if the user of Redis may not call
//     that, the metric is missing.
//
// Those of the Collector itself:
//
//   - delayed_queues: queues that are known, and delayed_queues_omitted: those of them beyond Config.MaxQueues.
//   - delayed_scrape_success: 1 if everything could be read, and delayed_queue_scrape_success{queue} for each queue. If
//     something cannot be read, the metrics that come from it are missing, and the others are there.
//   - delayed_scrape_errors_total and delayed_scrape_duration_seconds.
//
// # What other metrics show
//
// Deaths of workers are seen in delayed_outcomes_total{outcome="swept"}: the tasks that were taken from dead workers.
// Redis does not report the times of single scripts; contrib/otel measures the calls that enqueue, of one process.
//
// # OpenTelemetry
//
// The Collector's metrics reach an OpenTelemetry MeterProvider through the Prometheus bridge of OpenTelemetry, which
// reads a registry whenever metrics are collected:
//
//	reg := prometheus.NewRegistry()
//	reg.MustRegister(delayedprom.New(ins, delayedprom.Config{}))
//	// "go.opentelemetry.io/contrib/bridges/prometheus" as bridge
//	producer := bridge.NewMetricProducer(bridge.WithGatherer(reg))
//	reader := metric.NewPeriodicReader(exporter, metric.WithProducer(producer))
//
// # Cardinality
//
// The first 64 functions of a queue have series of their own, and all others share those with an empty label function.
// A function has 55 series, and a queue has 57 beside those of its functions, and a server five. There is no label for
// ids, workers or hosts. A path of a function that is longer than 200 bytes is cut, and functions whose paths are then
// equal share their series.
package delayedprom
