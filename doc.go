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
// A task that Redis has accepted runs at least once while Redis keeps its data, unless it ends before its first run: it
// is cancelled, replaced or deleted, or archived because its TTL or Deadline is over, its arguments do not fit, its
// message is too large or unreadable, no worker could run it for seven days, or somebody archived it by hand.
//
// A task starts again after a failure, Snooze or RunAgain, and when its worker stopped or died before the handler had
// finished. A task that has succeeded runs again only when its worker ended, or was believed dead, before Redis had the
// acknowledgement, when Redis lost the acknowledgement in a fail-over, or when an enqueue without a reply was repeated.
//
// # Failures
//
// A handler fails when it returns an error or panics. The task is then tried again, 25 times by default, after 5, 10,
// 20 seconds and so on up to 6 hours, each ± 25 %. When no retries are left it is archived. Options and WorkerConfig
// change these numbers. A handler decides otherwise by the error that it returns: see Discard, Drop, RetryIn and
// Snooze. WorkerConfig.IsFailure says which errors are no failures.
//
// A task whose arguments do not fit the function is archived at once. A task is parked if the worker does not know its
// function, or if the worker's structs lack fields that the arguments have: it waits seven days for a worker that knows
// them, and then it is archived. A handler has no time limit by default; see Timeout.
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
// A handler is the function of a task, as a worker runs it. The path of a function is its import path and its name,
// such as example.com/app/mail.Welcome. A task names its function by the path, so renaming or moving the function
// changes the path; see Name and Alias. A worker claims a task: it takes it out of the pending ones and is responsible
// for it. An executor is a goroutine of a worker that runs one task at a time.
//
// An archived task does not run again by itself: it failed for good, expired before it could start, or was archived by
// hand, for example. A queue keeps at most 10,000 archived tasks, each for 90 days; see WorkerConfig.ArchiveMax and
// ArchiveFor. Other task queues call them dead letters. A parked task was claimed by a worker that cannot run it: the
// worker does not know the function or a struct field of the arguments, or the task is a Python task. It waits up to
// seven days for a worker that can run it, and is archived then.
//
// A lock is what Unique holds in Redis. A legacy queue is shared with legacy workers: those of the Python package
// delayed by keakon, or of go-delayed. Legacy workers read plain messages, which carry no id; an extended message
// carries an id and the options of the task. A notification is an element of a second list in Redis: each task that
// becomes pending adds one, and legacy workers sleep until there is one.
//
// # Wrong use
//
// What is wrong with a call, an option or a configuration is an error, and its text says what was expected. Queue.With,
// Func, Call, NewGoTask and NewPyTask return no error: Delay, Enqueue, DelayMany or Worker.Register report later what
// is wrong with their arguments.
//
// NewQueue panics if the name is malformed or the handle is nil or zero; FromPool, FromSource and SlogLogger panic if
// they are given nil. A nil or zero handle, queue, task or worker is an error; its methods that return no error panic
// if the receiver is nil, or if it is zero and they need what a constructor sets. String and GoString never do. The
// value of such a panic is an error whose text begins with "delayed: ".
//
// # States
//
//	Delay ───────────► pending ──claim──► active ──ok──────────► gone, or completed and kept
//	   │ In, At           ▲ ▲               │ │ └─error, retries left──► retry ──due──► pending
//	   └────► scheduled ──┘ │               │ └──error, none left──────► archived
//	                        │               └──function unknown here ──► parked ──a worker knows it──► pending
//	                        └─worker dead (sweeper)
//
// A task is archived, too, when three workers have died that were running it and nothing else; see Task.Deaths. The
// diagram leaves out that a call with Group is aggregating until its group becomes one call, that Snooze makes a task
// scheduled again, that Drop and Cancel end it as dropped and canceled, and that a task whose TTL or Deadline is over
// is archived with the reason "expired". Package state has all states; docs/ARCHITECTURE.md has a whole diagram, and
// the map of the code.
package delayed
