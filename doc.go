// Package delayed runs Go function calls later and elsewhere, with Redis in between.
//
//	q.Delay(mail.Welcome, userID, "en")
//
// A Queue makes a call into a task: the function's path and its arguments in MessagePack. A Worker that has registered
// the function claims the task and calls it. Functions need no schema and no code generation; arguments are checked on
// both sides.
//
// # Guarantee
//
// A task that was accepted runs at least once, while Redis keeps its data. It runs twice only when its worker was
// believed dead, when Redis lost its acknowledgement in a fail-over, or when an enqueue without reply was repeated.
//
// # Wrong use
//
// What is wrong with a call, an option or a configuration is an error where it is given, and its text says what was
// expected. Nil and zero handles, queues, tasks and workers are errors too; functions that return none panic with a
// text that begins with "delayed: ".
//
// # States
//
//	Delay ───────────► pending ──claim──► active ──ok──────────► gone
//	   │ In, At           ▲ ▲               │ │ └─error, retries left──► retry ──due──► pending
//	   └────► scheduled ──┘ │               │ └──error, none left──────► archived
//	                        │               └──function unknown here ──► parked ──a worker knows it──► pending
//	                        └─worker dead (sweeper); archived after three deaths alone
//
// # Reading order
//
// queue.go and task.go make a message, and lua/enqueue.lua stores it. In internal/engine, fetch.go claims it, execute.go
// runs it and finish.go tells how it ended; heartbeat.go and mover.go are the loops beside them, and so is package
// internal/sweep. docs/ARCHITECTURE.md has the map and the reasons.
package delayed
