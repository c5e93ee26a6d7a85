package web

import (
	"net/http"

	"github.com/godelayed/delayed/inspect"
)

// endpoints are the addresses of the API, and what they do.
func endpoints() []endpoint {
	const get, post, put, del = http.MethodGet, http.MethodPost, http.MethodPut, http.MethodDelete
	queues, one := []param{queuesParam}, []param{queueParam}
	return []endpoint{
		{get, "openapi.json", Viewer, "description", "Describe this API.", nil, 0, answers(apiDescription)},
		{get, "me", Viewer, "me", "Say who asks, and what that user may do.", nil, 0, answers(apiMe)},

		{get, "queues", Viewer, "listQueues", "List all queues with what they hold.", nil, 0, answers(apiQueues)},
		{get, "queues/{queue}", Viewer, "getQueue", "Describe a queue.", nil, 0, answers(apiQueue)},
		{
			get, "queues/{queue}/history", Viewer, "getHistory", "Say what became of a queue's tasks, day by day.",
			[]param{daysParam},
			0, answers(apiHistory),
		},
		{
			post, "queues/{queue}/pause", Operator, "pauseQueue",
			"Let workers run no further tasks of a queue; what runs goes on.", nil, 0,
			apiSteer("pause", func(c *apiCall, name string) error { return c.ins.Pause(c.ctx, name) }),
		},
		{
			post, "queues/{queue}/resume", Operator, "resumeQueue", "End a pause of a queue.", nil, 0,
			apiSteer("resume", func(c *apiCall, name string) error { return c.ins.Resume(c.ctx, name) }),
		},
		{
			post, "queues/{queue}/restart", Operator, "restartQueue",
			"Let all workers of a queue finish what they run and stop, so that their supervisors start them again.",
			nil, 0,
			apiSteer("restart", func(c *apiCall, name string) error { return c.ins.Restart(c.ctx, name) }),
		},
		{
			put, "queues/{queue}/weight", Operator, "weighQueue",
			"Change how often workers with weighted queues serve a queue.", nil, 0, takes(apiWeight),
		},
		{
			del, "queues/{queue}", Admin, "deleteQueue", "Delete a queue with everything that Redis keeps of it.",
			[]param{forceParam},
			0, answers(apiDeleteQueue),
		},
		{get, "stats", Viewer, "getStats", "Say what queues hold together.", queues, 0, answers(apiStats)},
		{
			get, "metrics", Viewer, "getMetrics", "Say what handlers have done, by function and time.",
			[]param{queuesParam, perParam, lastParam, functionParam},
			0, answers(apiMetrics),
		},
		{
			get, "diagnosis", Viewer, "getDiagnosis",
			"Say what is wrong with Redis, queues and workers, or with some queues alone, and what to do.", queues, 0,
			answers(apiDiagnosis),
		},
		{
			get, "backlog", Viewer, "getBacklog", "Say how much work waits, and how many workers are wanted for it.",
			[]param{queuesParam, targetParam, concurrencyParam, minParam, maxParam},
			0, answers(apiBacklog),
		},

		{get, "tasks", Viewer, "listTasks", "List tasks of queues.", listParams(), 0, answers(apiTasks)},
		{
			post, "tasks", Admin, "enqueue",
			"Enqueue a call, checked against what workers have published unless it is to be taken as it is.", nil,
			http.StatusCreated, takes(apiEnqueue),
		},
		{get, "tasks/{id}", Viewer, "getTask", "Show everything that is known of a task.", one, 0, answers(apiTask)},
		{
			del, "tasks/{id}", Operator, "deleteTask", "Delete a task that waits or has ended.", one, 0,
			apiActOn("delete"),
		},
		{
			put, "tasks/{id}/arguments", Admin, "editTask", "Give a task that waits other arguments.", one, 0,
			takes(apiEdit),
		},
		{
			post, "tasks/{id}/run", Operator, "runTask",
			"Make a task pending that is scheduled, retrying, parked or archived.", one, 0, apiActOn("run"),
		},
		{
			post, "tasks/{id}/archive", Operator, "archiveTask", "Archive a task that waits.", one, 0,
			apiActOn("archive"),
		},
		{
			post, "tasks/{id}/cancel", Operator, "cancelTask", "Cancel a task that waits or runs.", one, 0,
			apiActOn("cancel"),
		},
		{
			post, "tasks/{id}/reschedule", Operator, "rescheduleTask",
			"Give another due time to a task that is pending, scheduled or retrying.", one, 0,
			apiActOnHow("reschedule"),
		},
		{
			post, "tasks/{id}/move", Operator, "moveTask", "Move a task to another queue.", one, 0, apiActOnHow("move"),
		},
		{
			post, "actions", Operator, "act", "Do something to tasks of a queue with given ids.", nil, 0, takes(apiAct),
		},
		{get, "jobs", Viewer, "listJobs", "List the jobs that this dashboard remembers.", nil, 0, answers(apiJobs)},
		{
			post, "jobs", Operator, "startJob", "Begin to do something to all tasks of a list that a filter matches.",
			nil,
			http.StatusAccepted, takes(apiStartJob),
		},
		{get, "jobs/{job}", Viewer, "getJob", "Say how far a job is.", nil, 0, answers(apiJob)},
		{
			del, "jobs/{job}", Operator, "cancelJob", "End a job after the tasks that it is at; what was done stays " +
				"done.",
			nil, http.StatusAccepted, answers(apiCancelJob),
		},

		{
			get, "functions", Viewer, "listFunctions", "List the functions that workers of queues have published.",
			queues,
			0, answers(apiFunctions),
		},
		{
			get, "workers", Viewer, "listWorkers", "List workers and what each of them has claimed.", queues, 0,
			answers(apiWorkers),
		},
		{
			get, "workers/{worker}", Viewer, "getWorker", "Show a worker and what it has claimed.", nil, 0,
			answers(apiWorker),
		},
		{
			post, "workers/{worker}/pause", Operator, "pauseWorker",
			"Let a worker claim no more tasks until it is resumed.", nil, 0, apiOrder(inspect.OrderPause),
		},
		{
			post, "workers/{worker}/resume", Operator, "resumeWorker", "End a pause of a worker.", nil, 0,
			apiOrder(inspect.OrderResume),
		},
		{
			post, "workers/{worker}/quiet", Operator, "quietWorker", "Let a worker claim no more tasks for good.", nil,
			0,
			apiOrder(inspect.OrderQuiet),
		},
		{
			post, "workers/{worker}/stop", Admin, "stopWorker", "Let a worker finish what it runs and stop.", nil, 0,
			apiOrder(inspect.OrderStop),
		},

		{get, "entries", Viewer, "listEntries", "List periodic entries.", queues, 0, answers(apiEntries)},
		{
			get, "queues/{queue}/entries/{entry}/history", Viewer, "getTicks",
			"Say what became of the last ticks of an entry.", nil, 0, answers(apiTicks),
		},
		{
			post, "queues/{queue}/entries/{entry}/run", Operator, "runEntry",
			"Enqueue the task of an entry now; its ticks stay.", nil, http.StatusCreated, answers(apiRunEntry),
		},
		{
			post, "queues/{queue}/entries/{entry}/pause", Operator, "pauseEntry",
			"Let an entry tick no more until it is resumed.", nil, 0,
			apiOrderEntry("pause", (*inspect.Inspector).PauseEntry),
		},
		{
			post, "queues/{queue}/entries/{entry}/resume", Operator, "resumeEntry", "End a pause of an entry.", nil, 0,
			apiOrderEntry("resume", (*inspect.Inspector).ResumeEntry),
		},
		{
			del, "queues/{queue}/entries/{entry}", Admin, "removeEntry", "Remove an entry and its history.", nil, 0,
			apiOrderEntry("remove", (*inspect.Inspector).RemoveEntry),
		},
		{
			get, "groups", Viewer, "listGroups", "List groups of calls that wait for more calls, 100 of a queue at " +
				"most.",
			queues, 0, answers(apiGroups),
		},
		{
			post, "queues/{queue}/groups/fire", Operator, "fireGroup",
			"Make groups due now, so that a worker makes one call of their calls.", nil, 0, takes(apiFire),
		},
		{
			get, "audit", Viewer, "getAudit", "Show who has acted, the latest first.",
			[]param{skipParam, limitParam},
			0,
			answers(apiAudit),
		},
		{
			get, "events", Viewer, "followEvents",
			"Follow what happens in workers, as server-sent events: each one's data is a document.", eventParams(), 0,
			action{stream: apiEvents},
		},
	}
}
