package api

import (
	"net/http"
	"slices"
	"strings"

	"github.com/godelayed/delayed/web/internal/auth"
	"github.com/godelayed/delayed/web/internal/site"
)

// The roles that endpoints need.
const (
	viewer   = auth.Viewer
	operator = auth.Operator
	admin    = auth.Admin
)

func get(path, name string, a action, text string, params ...param) Endpoint {
	return Endpoint{http.MethodGet, path, viewer, name, text, params, a}
}

func post(path string, role auth.Role, name string, a action, text string, params ...param) Endpoint {
	return Endpoint{http.MethodPost, path, role, name, text, params, a}
}

func put(path string, role auth.Role, name string, a action, text string, params ...param) Endpoint {
	return Endpoint{http.MethodPut, path, role, name, text, params, a}
}

func del(path string, role auth.Role, name string, a action, text string, params ...param) Endpoint {
	return Endpoint{http.MethodDelete, path, role, name, text, params, a}
}

// Endpoints are the addresses of the API, and what they do.
func Endpoints() []Endpoint {
	all := []Endpoint{
		get("openapi.json", "description", answers(apiDescription), "Describe this API."),
		get("me", "me", answers(apiMe), "Say who asks, and what that user may do."),

		get("queues", "listQueues", answers(apiQueues), "List all queues with what they hold."),
		get("queues/{queue}", "getQueue", answers(apiQueue), "Describe a queue."),
		get("queues/{queue}/history", "getHistory", answers(apiHistory),
			"Say what became of a queue's tasks, day by day.", daysParam),
		put("queues/{queue}/weight", operator, "weighQueue", takes(apiWeight),
			"Change how often workers with weighted queues serve a queue."),
		del("queues/{queue}", admin, "deleteQueue", answers(apiDeleteQueue),
			"Delete a queue with everything that Redis keeps of it.", forceParam),
		get("stats", "getStats", reads(apiStats), "Say what queues hold together.", queuesParam),
		get("metrics", "getMetrics", reads(apiMetrics), "Say what handlers have done, by function and time.",
			queuesParam, perParam, lastParam, functionParam),
		get("diagnosis", "getDiagnosis", answers(apiDiagnosis),
			"Say what is wrong with Redis, queues and workers, or with some queues alone, and what to do.",
			queuesParam),
		get("backlog", "getBacklog", answers(apiBacklog),
			"Say how much work waits, and how many workers are wanted for it.",
			queuesParam, targetParam, concurrencyParam, minParam, maxParam),

		get("tasks", "listTasks", reads(apiTasks), "List tasks of queues.", listParams()...),
		post("tasks", admin, "enqueue", takes(apiEnqueue).with(http.StatusCreated),
			"Enqueue a call, checked against what workers have published unless it is to be taken as it is."),
		get("tasks/{id}", "getTask", answers(apiTask), "Show everything that is known of a task.", queueParam),
		put("tasks/{id}/arguments", admin, "editTask", takes(apiEdit), "Give a task that waits other arguments.",
			queueParam),
		post("actions", operator, "act", takes(apiAct), "Do something to tasks of a queue with given ids."),
		get("jobs", "listJobs", answers(apiJobs), "List the jobs that this dashboard remembers."),
		post("jobs", operator, "startJob", takes(apiStartJob).with(http.StatusAccepted),
			"Begin to do something to all tasks of a list that a filter matches."),
		get("jobs/{job}", "getJob", answers(apiJob), "Say how far a job is."),
		del("jobs/{job}", operator, "cancelJob", answers(apiCancelJob).with(http.StatusAccepted),
			"End a job after the tasks that it is at; what was done stays done."),

		get("functions", "listFunctions", reads(apiFunctions),
			"List the functions that workers of queues have published.", queuesParam),
		get("workers", "listWorkers", reads(apiWorkers), "List workers and what each of them has claimed.",
			queuesParam),
		get("workers/{worker}", "getWorker", answers(apiWorker), "Show a worker and what it has claimed."),

		get("entries", "listEntries", reads(apiEntries), "List periodic entries.", queuesParam),
		get("queues/{queue}/entries/{entry}/history", "getTicks", answers(apiTicks),
			"Say what became of the last ticks of an entry."),
		post("queues/{queue}/entries/{entry}/run", operator, "runEntry", answers(apiRunEntry).with(http.StatusCreated),
			"Enqueue the task of an entry now; its ticks stay."),
		get("groups", "listGroups", reads(apiGroups),
			"List groups of calls that wait for more calls, 100 of a queue at most.", queuesParam),
		post("queues/{queue}/groups/fire", operator, "fireGroup", takes(apiFire),
			"Make groups due now, so that a worker makes one call of their calls."),
		get("audit", "getAudit", answers(apiAudit), "Show who has acted, the latest first.", skipParam, limitParam),
		get("events", "followEvents", action{stream: apiEvents},
			"Follow what happens in workers, as server-sent events: each one's data is a document.",
			queuesParam, kindParam, functionParam),
	}
	for _, v := range verbs() {
		e := post("tasks/{id}/"+v.Name, operator, v.Name+"Task", apiActOn(v), v.Help, queueParam)
		if v.Name == "delete" {
			e.Method, e.Path = http.MethodDelete, "tasks/{id}"
		}
		all = append(all, e)
	}
	return slices.Concat(all, commands("queues/{queue}", "Queue", site.QueueCommands),
		commands("workers/{worker}", "Worker", site.WorkerCommands),
		commands("queues/{queue}/entries/{entry}", "Entry", site.EntryCommands))
}

// commands are the endpoints of what users do to a whole thing. The last part of its path is the thing's name.
func commands(path, thing string, list []site.Command) (all []Endpoint) {
	for _, command := range list {
		e := post(path+"/"+command.Name, command.Role, command.Name+thing, apiCommand(command, strings.ToLower(thing)),
			command.Help)
		if command.Name == "remove" {
			e.Method, e.Path = http.MethodDelete, path
		}
		all = append(all, e)
	}
	return all
}
