// Package delayed is a task queue on Redis: programs enqueue calls of Go functions, and workers, in the same or in
// other processes, run them.
//
//	// the handler, in package mail
//	func Welcome(ctx context.Context, userID int64, lang string) error { return send(ctx, userID, lang) }
//
//	// in the programs that enqueue calls
//	rdb, err := delayed.Dial("redis://localhost:6379")
//	q := delayed.NewQueue("mail", rdb)
//	ref, err := q.Delay(mail.Welcome, userID, "en")
//
//	// in the programs that run them
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
// A task that Redis has accepted runs at least once while Redis keeps its data, unless it ends before its first run. It
// ends so if it is canceled or replaced, or deleted or archived by hand (by package inspect). It also ends so if it is
// archived because its TTL or Deadline is over, its arguments do not fit, its message is too large or unreadable, or no
// worker could run it for seven days.
//
// A task starts again after a failure, Snooze or RunAgain, and when its worker stopped or died before the handler had
// finished. A task that has succeeded runs again only when its worker ended, or was believed dead, before Redis had the
// acknowledgement, when Redis lost the acknowledgement in a fail-over, or when an enqueue without a reply was repeated.
//
// # Failures
//
// A handler fails when it returns an error or panics. The task is then tried again, 25 times by default, after 5, 10,
// 20 seconds and so on up to 6 hours, each ± 25 %. When no retries are left it is archived. Options and WorkerConfig
// change these numbers. A handler decides otherwise by the error that it returns: see Archive, Drop, RetryIn and
// Snooze. WorkerConfig.IsFailure says which errors are no failures. A handler has no time limit by default; see
// Timeout.
//
// An archived task does not run again by itself: it failed for good, its arguments do not fit the function, it expired
// before it could start, or it was archived by hand, for example. Other task queues call it a dead letter. A queue
// keeps at most 10,000 archived tasks, each for 90 days; see WorkerConfig.ArchiveMax and ArchiveFor.
//
// A parked task was claimed by a worker that cannot run it: the worker does not know the function, or its structs lack
// fields that the arguments have, or the function is one of Python. The task waits up to seven days for a worker that
// can run it, and is archived then.
//
// # Functions
//
// A function may take a context.Context first, then any number of arguments, variadic ones too. It returns nothing, an
// error, a T, or a T and an error. Arguments and T are booleans, numbers, strings, []byte, time.Time, and slices,
// arrays, maps, pointers and structs of these; channels, functions, complex numbers and interfaces with methods are
// refused. Structs travel by the names of their exported fields. A parameter of type any gets what the value is on the
// wire: an int64, a string, a map[string]any, never your struct. The message of a task, which is its arguments and
// little more, has at most 1 MiB and 65,536 values.
//
// # Words
//
// To delay a call means to enqueue it, not to postpone it: a worker runs it as soon as one is free. The options In and
// At postpone it. A handler is the function of a task, as a worker runs it. The path of a function is its import path
// and its name, such as example.com/app/mail.Welcome. A task names its function by the path, so renaming or moving the
// function changes the path; see Name and Alias. A handle is a *Store.
//
// A worker claims a task, often a little ahead of its start: it takes the task out of the pending ones and is
// responsible for it. An executor is a goroutine of a worker that runs one task at a time. A worker's heartbeat tells
// the others, by a key in Redis that expires, that the worker lives. A sweeper, which each worker has, looks for
// workers whose heartbeat has ended, and gives the tasks that they had claimed back to the queue.
//
// A lock is kept in Redis for Unique, so that no equal task is enqueued. The combined call is the one that is made of
// the calls of a Group. A periodic entry ticks when its task is to be enqueued.
//
// A Python task calls a Python function; see NewPyTask. A Python worker is one of our Python package godelayed. Legacy
// workers are those of keakon's Python package delayed and of the older Go library go-delayed, and a legacy queue is
// shared with them. They read plain messages, which carry no id; an extended message carries an id and the options of
// the task. Each queue has a second list in Redis, its notify list. Each task that becomes pending adds a notification
// to it, and idle workers sleep until there is one.
//
// # Wrong use
//
// What is wrong with a call, an option or a configuration is an error, and its text says what was expected. Queue.With,
// Func, Call, NewGoTask and NewPyTask return no error: Delay, Enqueue, DelayMany or Worker.Register report later what
// is wrong with their arguments.
//
// NewQueue panics if the name is malformed or the handle is nil or zero; FromPool, FromSource and SlogLogger panic if
// they are given nil. Methods that return an error return one if the receiver is nil or zero. The others panic if it is
// nil, and some also if it is zero. String and GoString never panic; all other methods of a nil Task do. The value of
// such a panic is an error whose text begins with "delayed: ".
//
// # States
//
//	Delay ───────────► pending ──claim──► active ──ok──────────► gone, or completed and kept
//	   │ In, At           ▲ ▲               │ │ └─error, retries left──► retry ──due──► pending
//	   └────► scheduled ──┘ │               │ └──error, none left──────► archived
//	                        │               └──function unknown here ──► parked ──a worker knows it──► active
//	                        └─worker dead (sweeper)
//
// A task is archived, too, when three workers have died that were running it and nothing else; see Task.Deaths. The
// diagram leaves out that a call with Group is aggregating until the combined call is made, that Snooze makes a task
// scheduled again, that a task which is tried again at once is pending, that Drop and Cancel end it as dropped and
// canceled, and that a task whose TTL or Deadline is over is archived with the reason "expired". Tasks in the state
// retry are called retrying in prose. Package state has all states; docs/ARCHITECTURE.md has a whole diagram, and the
// map of the code.
package delayed
