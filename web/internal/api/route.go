package api

import (
	"net/http"

	"github.com/godelayed/delayed/inspect"
)

// Endpoints are the addresses of the API, and what they do.
func Endpoints() []Endpoint {
	const get, post, put, del = http.MethodGet, http.MethodPost, http.MethodPut, http.MethodDelete
	queues, one := []param{queuesParam}, []param{queueParam}
	return []Endpoint{
		{get, "openapi.json", viewer, "description", "Describe this API.", nil, 0, answers(apiDescription)},
		{get, "me", viewer, "me", "Say who asks, and what that user may do.", nil, 0, answers(apiMe)},

		{get, "queues", viewer, "listQueues", "List all queues with what they hold.", nil, 0, answers(apiQueues)},
		{get, "queues/{queue}", viewer, "getQueue", "Describe a queue.", nil, 0, answers(apiQueue)},
		{
			get, "queues/{queue}/history", viewer, "getHistory", "Say what became of a queue's tasks, day by day.",
			[]param{daysParam},
			0, answers(apiHistory),
		},
		{
			post, "queues/{queue}/pause", operator, "pauseQueue",
			"Let workers run no further tasks of a queue; what runs goes on.", nil, 0,
			apiSteer("pause", func(c *apiCall, name string) error { return c.Ins.Pause(c.Ctx, name) }),
		},
		{
			post, "queues/{queue}/resume", operator, "resumeQueue", "End a pause of a queue.", nil, 0,
			apiSteer("resume", func(c *apiCall, name string) error { return c.Ins.Resume(c.Ctx, name) }),
		},
		{
			post, "queues/{queue}/restart", operator, "restartQueue",
			"Let all workers of a queue finish what they run and stop, so that their supervisors start them again.",
			nil, 0,
			apiSteer("restart", func(c *apiCall, name string) error { return c.Ins.Restart(c.Ctx, name) }),
		},
		{
			put, "queues/{queue}/weight", operator, "weighQueue",
			"Change how often workers with weighted queues serve a queue.", nil, 0, takes(apiWeight),
		},
		{
			del, "queues/{queue}", admin, "deleteQueue", "Delete a queue with everything that Redis keeps of it.",
			[]param{forceParam},
			0, answers(apiDeleteQueue),
		},
		{get, "stats", viewer, "getStats", "Say what queues hold together.", queues, 0, answers(apiStats)},
		{
			get, "metrics", viewer, "getMetrics", "Say what handlers have done, by function and time.",
			[]param{queuesParam, perParam, lastParam, functionParam},
			0, answers(apiMetrics),
		},
		{
			get, "diagnosis", viewer, "getDiagnosis",
			"Say what is wrong with Redis, queues and workers, or with some queues alone, and what to do.", queues, 0,
			answers(apiDiagnosis),
		},
		{
			get, "backlog", viewer, "getBacklog", "Say how much work waits, and how many workers are wanted for it.",
			[]param{queuesParam, targetParam, concurrencyParam, minParam, maxParam},
			0, answers(apiBacklog),
		},

		{get, "tasks", viewer, "listTasks", "List tasks of queues.", listParams(), 0, answers(apiTasks)},
		{
			post, "tasks", admin, "enqueue",
			"Enqueue a call, checked against what workers have published unless it is to be taken as it is.", nil,
			http.StatusCreated, takes(apiEnqueue),
		},
		{get, "tasks/{id}", viewer, "getTask", "Show everything that is known of a task.", one, 0, answers(apiTask)},
		{
			del, "tasks/{id}", operator, "deleteTask", "Delete a task that waits or has ended.", one, 0,
			apiActOn("delete"),
		},
		{
			put, "tasks/{id}/arguments", admin, "editTask", "Give a task that waits other arguments.", one, 0,
			takes(apiEdit),
		},
		{
			post, "tasks/{id}/run", operator, "runTask",
			"Make a task pending that is scheduled, retrying, parked or archived.", one, 0, apiActOn("run"),
		},
		{
			post, "tasks/{id}/archive", operator, "archiveTask", "Archive a task that waits.", one, 0,
			apiActOn("archive"),
		},
		{
			post, "tasks/{id}/cancel", operator, "cancelTask", "Cancel a task that waits or runs.", one, 0,
			apiActOn("cancel"),
		},
		{
			post, "tasks/{id}/reschedule", operator, "rescheduleTask",
			"Give another due time to a task that is pending, scheduled or retrying.", one, 0,
			apiActOnHow("reschedule"),
		},
		{
			post, "tasks/{id}/move", operator, "moveTask", "Move a task to another queue.", one, 0, apiActOnHow("move"),
		},
		{
			post, "actions", operator, "act", "Do something to tasks of a queue with given ids.", nil, 0, takes(apiAct),
		},
		{get, "jobs", viewer, "listJobs", "List the jobs that this dashboard remembers.", nil, 0, answers(apiJobs)},
		{
			post, "jobs", operator, "startJob", "Begin to do something to all tasks of a list that a filter matches.",
			nil,
			http.StatusAccepted, takes(apiStartJob),
		},
		{get, "jobs/{job}", viewer, "getJob", "Say how far a job is.", nil, 0, answers(apiJob)},
		{
			del, "jobs/{job}", operator, "cancelJob", "End a job after the tasks that it is at; what was done stays " +
				"done.",
			nil, http.StatusAccepted, answers(apiCancelJob),
		},

		{
			get, "functions", viewer, "listFunctions", "List the functions that workers of queues have published.",
			queues,
			0, answers(apiFunctions),
		},
		{
			get, "workers", viewer, "listWorkers", "List workers and what each of them has claimed.", queues, 0,
			answers(apiWorkers),
		},
		{
			get, "workers/{worker}", viewer, "getWorker", "Show a worker and what it has claimed.", nil, 0,
			answers(apiWorker),
		},
		{
			post, "workers/{worker}/pause", operator, "pauseWorker",
			"Let a worker claim no more tasks until it is resumed.", nil, 0, apiOrder(inspect.OrderPause),
		},
		{
			post, "workers/{worker}/resume", operator, "resumeWorker", "End a pause of a worker.", nil, 0,
			apiOrder(inspect.OrderResume),
		},
		{
			post, "workers/{worker}/quiet", operator, "quietWorker", "Let a worker claim no more tasks for good.", nil,
			0,
			apiOrder(inspect.OrderQuiet),
		},
		{
			post, "workers/{worker}/stop", admin, "stopWorker", "Let a worker finish what it runs and stop.", nil, 0,
			apiOrder(inspect.OrderStop),
		},

		{get, "entries", viewer, "listEntries", "List periodic entries.", queues, 0, answers(apiEntries)},
		{
			get, "queues/{queue}/entries/{entry}/history", viewer, "getTicks",
			"Say what became of the last ticks of an entry.", nil, 0, answers(apiTicks),
		},
		{
			post, "queues/{queue}/entries/{entry}/run", operator, "runEntry",
			"Enqueue the task of an entry now; its ticks stay.", nil, http.StatusCreated, answers(apiRunEntry),
		},
		{
			post, "queues/{queue}/entries/{entry}/pause", operator, "pauseEntry",
			"Let an entry tick no more until it is resumed.", nil, 0,
			apiOrderEntry("pause", (*inspect.Inspector).PauseEntry),
		},
		{
			post, "queues/{queue}/entries/{entry}/resume", operator, "resumeEntry", "End a pause of an entry.", nil, 0,
			apiOrderEntry("resume", (*inspect.Inspector).ResumeEntry),
		},
		{
			del, "queues/{queue}/entries/{entry}", admin, "removeEntry", "Remove an entry and its history.", nil, 0,
			apiOrderEntry("remove", (*inspect.Inspector).RemoveEntry),
		},
		{
			get, "groups", viewer, "listGroups", "List groups of calls that wait for more calls, 100 of a queue at " +
				"most.",
			queues, 0, answers(apiGroups),
		},
		{
			post, "queues/{queue}/groups/fire", operator, "fireGroup",
			"Make groups due now, so that a worker makes one call of their calls.", nil, 0, takes(apiFire),
		},
		{
			get, "audit", viewer, "getAudit", "Show who has acted, the latest first.",
			[]param{skipParam, limitParam},
			0,
			answers(apiAudit),
		},
		{
			get, "events", viewer, "followEvents",
			"Follow what happens in workers, as server-sent events: each one's data is a document.", eventParams(), 0,
			action{stream: apiEvents},
		},
	}
}
