// Package delayedotel makes spans and metrics of package delayed for OpenTelemetry: a span of each call that enqueues
// tasks, and one of each run of a handler, linked through headers of the task also across processes. The package is not
// called otel, because the programs that use it import OpenTelemetry's package of that name:
//
//	tel, err := delayedotel.New(delayedotel.Config{})
//	q, err := delayed.OpenQueue("mail", rdb, tel.Queue("mail", delayed.QueueConfig{})) // producers
//	err = tel.Worker(w)                                                            // workers, before w.Run
//
// Where a handler enqueues further tasks with its context, their spans are children of its own.
//
// # Spans
//
// Names, kinds and attributes follow the semantic conventions for messaging, version 1.43.0, which are still in
// development: a later version of this package may change them. messaging.system is "delayed", and
// messaging.destination.name is the queue.
//
//   - "enqueue QUEUE" (PRODUCER; messaging.operation.type send, messaging.operation.name enqueue): a call of Delay,
//     DelayContext, Enqueue or DelayMany. It has messaging.message.id, or messaging.batch.message_count if there are
//     several tasks or none; all tasks of a DelayMany carry the context of this one span.
//   - "run QUEUE" (CONSUMER; messaging.operation.type process, messaging.operation.name run): one attempt of one task,
//     so a task that is tried again has a span for each attempt. It has messaging.message.id, and messaging.client.id,
//     which is the id of the worker.
//
// A run is linked with the span of its enqueue, and is its child as well, which the conventions allow because a run is
// that of one message. With Config.NewTraces, or if middleware before this one has begun a span, it is only linked. A
// task without a trace context, as many programs in Python, periodic entries and producers without this package make
// them, has a run that begins a trace. A call that Group has combined carries the headers of the last call of the
// group: its run is linked with the enqueue of that one.
//
// Attributes of this package's own: messaging.delayed.function is the path of the function (missing if a DelayMany has
// several), messaging.delayed.attempt counts from 1, messaging.delayed.max_retry is how often the task is tried again,
// messaging.delayed.deaths is how many workers have died with it, if any, and messaging.delayed.outcome of a run is
// done, failed, retried (an error that Config.IsFailure does not count), snoozed, dropped, canceled, released (the
// worker stops) or lost. Only failed and lost are errors. Arguments are never part of a span, but texts of errors are,
// up to 1 KiB.
//
// error.type is what a method ErrorType() string of the error returns; panic; arguments, duplicate, full, unknown,
// closed and function for errors of package delayed; timeout, canceled, lost and shutdown by the cause with which the
// context has ended; not_enqueued, if QueueConfig.Around of the program did not enqueue; unwound, if a handler called
// runtime.Goexit or other middleware panicked; or else the Go type of the error.
//
// # Metrics
//
// By the conventions, with the attributes messaging.system, messaging.operation.type, messaging.operation.name,
// messaging.destination.name and, if something failed, error.type:
//
//   - messaging.client.operation.duration: histogram, in seconds, of calls that enqueue.
//   - messaging.client.sent.messages: tasks that were enqueued, or were not because of an error; also by function.
//   - messaging.process.duration: histogram, in seconds, of runs; also by function.
//   - messaging.client.consumed.messages: runs; also by function.
//
// This package's own, with messaging.system, messaging.destination.name and messaging.delayed.function:
//
//   - messaging.delayed.wait.duration: histogram, in seconds, of the time from the enqueue to the start of a run, by
//     the clocks of producer and worker, and 0 if they contradict each other. It includes the time for which a task was
//     scheduled or waited for a retry.
//   - messaging.delayed.outcomes: what became of claimed tasks, by messaging.delayed.outcome: done, failed, panicked,
//     timed_out, retried, snoozed, archived, dropped, parked, forwarded, expired, canceled, lost, released or stuck. A
//     task may be counted in several, such as panicked, failed and retried.
//   - messaging.delayed.missed_events: events that wait.duration and outcomes do not have, because listeners were slow.
//
// Metrics distinguish the first 100 queues, 200 functions and 100 types of errors; all others are "_OTHER". What waits
// in Redis is not among them, nor how late due tasks become pending, nor how long scripts run within Redis: module
// contrib/prometheus shows that, once for all processes, and its documentation describes how it reaches OpenTelemetry.
package delayedotel
