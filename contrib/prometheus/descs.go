package delayedprom

import "github.com/prometheus/client_golang/prometheus"

// descs describes all metrics.
type descs struct {
	all []*prometheus.Desc

	tasks, suspects, latency, paused, groups, outcomes, memory *prometheus.Desc // of a queue
	workers, slots, claims, longRunning, longest               *prometheus.Desc // of its workers
	run, failed, archived, wait, took                          *prometheus.Desc // of its functions
	lateness                                                   *prometheus.Desc // of its tasks that were due
	scripts                                                    *prometheus.Desc // of a server

	queues, omitted, success, queueSuccess, errors, duration *prometheus.Desc
}

func newDescs(namespace string) *descs {
	d := new(descs)
	desc := func(name, help string, labels ...string) *prometheus.Desc {
		one := prometheus.NewDesc(prometheus.BuildFQName(namespace, "", name), help, labels, nil)
		d.all = append(d.all, one)
		return one
	}
	d.tasks = desc("tasks", "Tasks in each state.", "queue", "state")
	d.suspects = desc("suspect_tasks", "Pending tasks that have died with a worker lately.", "queue")
	d.latency = desc("queue_latency_seconds", "Age of the oldest pending task.", "queue")
	d.paused = desc("queue_paused", "Whether the queue is paused.", "queue")
	d.groups = desc("groups", "Groups whose calls wait to be put together.", "queue")
	d.outcomes = desc("outcomes_total", "What became of tasks since midnight UTC; one task may count in several.",
		"queue", "outcome")
	d.memory = desc("queue_memory_bytes", "Memory that Redis uses for the queue, estimated.", "queue")

	d.workers = desc("workers", "Workers that are alive.", "queue")
	d.slots = desc("worker_slots", "Tasks that workers of the queue, and of others, can run at a time.", "queue")
	d.claims = desc("claims", "Tasks that are claimed by workers that are alive or dead.", "queue", "worker")
	d.longRunning = desc("long_running_tasks", "Handlers that have run for more than a second.", "queue")
	d.longest = desc("longest_run_seconds", "How long the longest running handler has run.", "queue")

	d.run = desc("tasks_run_total", "Handlers that have returned, or were not called because the arguments do not fit.",
		"queue", "function")
	d.failed = desc("tasks_failed_total", "Runs of tasks_run_total that count as failed.", "queue", "function")
	d.archived = desc("tasks_archived_total", "Failed tasks that are not tried again.", "queue", "function")
	d.wait = desc("task_wait_seconds", "How long tasks waited for a worker, from when they could start.",
		"queue", "function")
	d.took = desc("task_run_seconds", "How long handlers took.", "queue", "function")

	d.lateness = desc("due_lateness_seconds", "How late scheduled and retried tasks became pending.",
		"queue")
	d.scripts = desc("redis_script_seconds", "How long scripts ran within the Redis server, since it started.",
		"server")

	d.queues = desc("queues", "Queues that are known.")
	d.omitted = desc("queues_omitted", "Queues that are not shown because there are too many.")
	d.success = desc("scrape_success", "Whether the last scrape could read everything.")
	d.queueSuccess = desc("queue_scrape_success", "Whether the last scrape could read all of the queue.", "queue")
	d.errors = desc("scrape_errors_total", "Errors of scrapes since the start of this process.")
	d.duration = desc("scrape_duration_seconds", "How long the last scrape took.")
	return d
}
