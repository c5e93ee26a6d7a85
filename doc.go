// Package delayed runs Go function calls later and elsewhere, with Redis in between.
//
//	// in the programs that have something to do
//	rdb, err := delayed.Dial("redis://localhost:6379")
//	q := delayed.NewQueue("mail", rdb)
//	ref, err := q.Delay(mail.Welcome, userID, "en")
//
//	// in the programs that do it
//	w, err := delayed.NewWorker(rdb, delayed.WorkerConfig{Queues: delayed.Strict{"mail"}})
//	err = w.Register(mail.Welcome)
//	err = w.Run(ctx)
//
// A Queue makes a call into a task: the function's path and its arguments in MessagePack. A Worker that has registered
// the function claims the task and calls it. Functions need no schema and no code generation; arguments are checked on
// both sides. Redis must be 6.2 or later.
//
// Start with Queue.Delay, Worker.Run and Option; then see Unique, Group, Scheduler and Ref.Wait.
//
// # Guarantee
//
// A task that was accepted runs at least once, while Redis keeps its data. It runs twice only when its worker was
// believed dead, when Redis lost its acknowledgement in a fail-over, or when an enqueue without reply was repeated.
//
// # Functions
//
// A function may take a context.Context first, then any number of arguments, variadic ones too. It returns nothing, an
// error, a T, or a T and an error. Arguments and T are booleans, numbers, strings, []byte, time.Time, and slices,
// arrays, maps, pointers and structs of these; channels, functions, complex numbers and interfaces with methods are
// refused. Structs travel by the names of their exported fields. A parameter of type any gets what the value is on the
// wire: an int64, a string, a map[string]any, never your struct. The arguments of one task are at most 1 MiB and 65,536
// values.
//
// # Words
//
// A handler is the function of a task, as a worker runs it. A worker claims a task: it takes it out of the pending ones
// and is responsible for it. An archived task has failed for good and is kept for 90 days; elsewhere this is called a
// dead letter. A parked task waits for a worker that knows its function. A lock is what Unique holds in Redis. A legacy
// queue is shared with workers of the Python package delayed by keakon, or of go-delayed.
//
// # Wrong use
//
// What is wrong with a call, an option or a configuration is an error, and its text says what was expected. What is
// wrong with options of Queue.With and Func is reported when a task is delayed or the function is registered. Nil and
// zero handles, queues, tasks and workers are errors too; functions that return no error panic with a text that begins
// with "delayed: ".
//
// # States
//
//	Delay ───────────► pending ──claim──► active ──ok──────────► gone, or completed and kept
//	   │ In, At           ▲ ▲               │ │ └─error, retries left──► retry ──due──► pending
//	   └────► scheduled ──┘ │               │ └──error, none left──────► archived
//	                        │               └──function unknown here ──► parked ──a worker knows it──► pending
//	                        └─worker dead (sweeper)
//
// A task is archived, too, when three workers have died that were running it and nothing else. Package state has all
// states that Ref.State can tell; docs/ARCHITECTURE.md has a whole diagram, and the map of the code.
package delayed
