package api

import (
	"net/http"

	"github.com/godelayed/delayed/inspect"
	"github.com/godelayed/delayed/web/internal/auth"
)

// Endpoints are the addresses of the API, and what they do.
func Endpoints() []endpoint {
	const get, post, put, del = http.MethodGet, http.MethodPost, http.MethodPut, http.MethodDelete
	queues, one := []param{queuesParam}, []param{queueParam}
	return []endpoint{
		{get, "openapi.json", auth.Viewer, "description", "Describe this API.", nil, 0, answers(apiDescription)},
		{get, "me", auth.Viewer, "me", "Say who asks, and what that user may do.", nil, 0, answers(apiMe)},

		{get, "queues", auth.Viewer, "listQueues", "List all queues with what they hold.", nil, 0, answers(apiQueues)},
		{get, "queues/{queue}", auth.Viewer, "getQueue", "Describe a queue.", nil, 0, answers(apiQueue)},
		{
			get, "queues/{queue}/history", auth.Viewer, "getHistory", "Say what became of a queue's tasks, day by day.",
			[]param{daysParam},
			0, answers(apiHistory),
		},
		{
			post, "queues/{queue}/pause", auth.Operator, "pauseQueue",
			"Let workers run no further tasks of a queue; what runs goes on.", nil, 0,
			apiSteer("pause", func(c *apiCall, name string) error { return c.Ins.Pause(c.Ctx, name) }),
		},
		{
			post, "queues/{queue}/resume", auth.Operator, "resumeQueue", "End a pause of a queue.", nil, 0,
			apiSteer("resume", func(c *apiCall, name string) error { return c.Ins.Resume(c.Ctx, name) }),
		},
		{
			post, "queues/{queue}/restart", auth.Operator, "restartQueue",
			"Let all workers of a queue finish what they run and stop, so that their supervisors start them again.",
			nil, 0,
			apiSteer("restart", func(c *apiCall, name string) error { return c.Ins.Restart(c.Ctx, name) }),
		},
		{
			put, "queues/{queue}/weight", auth.Operator, "weighQueue",
			"Change how often workers with weighted queues serve a queue.", nil, 0, takes(apiWeight),
		},
		{
			del, "queues/{queue}", auth.Admin, "deleteQueue", "Delete a queue with everything that Redis keeps of it.",
			[]param{forceParam},
			0, answers(apiDeleteQueue),
		},
		{get, "stats", auth.Viewer, "getStats", "Say what queues hold together.", queues, 0, answers(apiStats)},
		{
			get, "metrics", auth.Viewer, "getMetrics", "Say what handlers have done, by function and time.",
			[]param{queuesParam, perParam, lastParam, functionParam},
			0, answers(apiMetrics),
		},
		{
			get, "diagnosis", auth.Viewer, "getDiagnosis",
			"Say what is wrong with Redis, queues and workers, or with some queues alone, and what to do.", queues, 0,
			answers(apiDiagnosis),
		},
		{
			get, "backlog", auth.Viewer, "getBacklog", "Say how much work waits, and how many workers are wanted for it.",
			[]param{queuesParam, targetParam, concurrencyParam, minParam, maxParam},
			0, answers(apiBacklog),
		},

		{get, "tasks", auth.Viewer, "listTasks", "List tasks of queues.", listParams(), 0, answers(apiTasks)},
		{
			post, "tasks", auth.Admin, "enqueue",
			"Enqueue a call, checked against what workers have published unless it is to be taken as it is.", nil,
			http.StatusCreated, takes(apiEnqueue),
		},
		{get, "tasks/{id}", auth.Viewer, "getTask", "Show everything that is known of a task.", one, 0, answers(apiTask)},
		{
			del, "tasks/{id}", auth.Operator, "deleteTask", "Delete a task that waits or has ended.", one, 0,
			apiActOn("delete"),
		},
		{
			put, "tasks/{id}/arguments", auth.Admin, "editTask", "Give a task that waits other arguments.", one, 0,
			takes(apiEdit),
		},
		{
			post, "tasks/{id}/run", auth.Operator, "runTask",
			"Make a task pending that is scheduled, retrying, parked or archived.", one, 0, apiActOn("run"),
		},
		{
			post, "tasks/{id}/archive", auth.Operator, "archiveTask", "Archive a task that waits.", one, 0,
			apiActOn("archive"),
		},
		{
			post, "tasks/{id}/cancel", auth.Operator, "cancelTask", "Cancel a task that waits or runs.", one, 0,
			apiActOn("cancel"),
		},
		{
			post, "tasks/{id}/reschedule", auth.Operator, "rescheduleTask",
			"Give another due time to a task that is pending, scheduled or retrying.", one, 0,
			apiActOnHow("reschedule"),
		},
		{
			post, "tasks/{id}/move", auth.Operator, "moveTask", "Move a task to another queue.", one, 0, apiActOnHow("move"),
		},
		{
			post, "actions", auth.Operator, "act", "Do something to tasks of a queue with given ids.", nil, 0, takes(apiAct),
		},
		{get, "jobs", auth.Viewer, "listJobs", "List the jobs that this dashboard remembers.", nil, 0, answers(apiJobs)},
		{
			post, "jobs", auth.Operator, "startJob", "Begin to do something to all tasks of a list that a filter matches.",
			nil,
			http.StatusAccepted, takes(apiStartJob),
		},
		{get, "jobs/{job}", auth.Viewer, "getJob", "Say how far a job is.", nil, 0, answers(apiJob)},
		{
			del, "jobs/{job}", auth.Operator, "cancelJob", "End a job after the tasks that it is at; what was done stays " +
				"done.",
			nil, http.StatusAccepted, answers(apiCancelJob),
		},

		{
			get, "functions", auth.Viewer, "listFunctions", "List the functions that workers of queues have published.",
			queues,
			0, answers(apiFunctions),
		},
		{
			get, "workers", auth.Viewer, "listWorkers", "List workers and what each of them has claimed.", queues, 0,
			answers(apiWorkers),
		},
		{
			get, "workers/{worker}", auth.Viewer, "getWorker", "Show a worker and what it has claimed.", nil, 0,
			answers(apiWorker),
		},
		{
			post, "workers/{worker}/pause", auth.Operator, "pauseWorker",
			"Let a worker claim no more tasks until it is resumed.", nil, 0, apiOrder(inspect.OrderPause),
		},
		{
			post, "workers/{worker}/resume", auth.Operator, "resumeWorker", "End a pause of a worker.", nil, 0,
			apiOrder(inspect.OrderResume),
		},
		{
			post, "workers/{worker}/quiet", auth.Operator, "quietWorker", "Let a worker claim no more tasks for good.", nil,
			0,
			apiOrder(inspect.OrderQuiet),
		},
		{
			post, "workers/{worker}/stop", auth.Admin, "stopWorker", "Let a worker finish what it runs and stop.", nil, 0,
			apiOrder(inspect.OrderStop),
		},

		{get, "entries", auth.Viewer, "listEntries", "List periodic entries.", queues, 0, answers(apiEntries)},
		{
			get, "queues/{queue}/entries/{entry}/history", auth.Viewer, "getTicks",
			"Say what became of the last ticks of an entry.", nil, 0, answers(apiTicks),
		},
		{
			post, "queues/{queue}/entries/{entry}/run", auth.Operator, "runEntry",
			"Enqueue the task of an entry now; its ticks stay.", nil, http.StatusCreated, answers(apiRunEntry),
		},
		{
			post, "queues/{queue}/entries/{entry}/pause", auth.Operator, "pauseEntry",
			"Let an entry tick no more until it is resumed.", nil, 0,
			apiOrderEntry("pause", (*inspect.Inspector).PauseEntry),
		},
		{
			post, "queues/{queue}/entries/{entry}/resume", auth.Operator, "resumeEntry", "End a pause of an entry.", nil, 0,
			apiOrderEntry("resume", (*inspect.Inspector).ResumeEntry),
		},
		{
			del, "queues/{queue}/entries/{entry}", auth.Admin, "removeEntry", "Remove an entry and its history.", nil, 0,
			apiOrderEntry("remove", (*inspect.Inspector).RemoveEntry),
		},
		{
			get, "groups", auth.Viewer, "listGroups", "List groups of calls that wait for more calls, 100 of a queue at " +
				"most.",
			queues, 0, answers(apiGroups),
		},
		{
			post, "queues/{queue}/groups/fire", auth.Operator, "fireGroup",
			"Make groups due now, so that a worker makes one call of their calls.", nil, 0, takes(apiFire),
		},
		{
			get, "audit", auth.Viewer, "getAudit", "Show who has acted, the latest first.",
			[]param{skipParam, limitParam},
			0,
			answers(apiAudit),
		},
		{
			get, "events", auth.Viewer, "followEvents",
			"Follow what happens in workers, as server-sent events: each one's data is a document.", eventParams(), 0,
			action{stream: apiEvents},
		},
	}
}
