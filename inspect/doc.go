// Package inspect shows what queues hold and what their workers do, and acts on tasks: it runs them now, archives,
// deletes, cancels, reschedules, moves and edits them. It steers queues, workers, periodic entries and groups too. All
// that it does is in an audit log; what programs do by delayed.Queue and delayed.WorkerControl is not.
//
// An Inspector finds the queues that producers and workers of its Redis handle use, and needs none of their functions:
// arguments are decoded as they were encoded.
//
//	ins, err := inspect.New(rdb, inspect.Config{})
//	queues, err := ins.Queues(ctx)
//	page, err := ins.Tasks(ctx, "mail", inspect.Query{
//		State: state.Retry, Filter: inspect.Filter{Function: "Welcome"},
//	})
//
// A list does not show one moment, because tasks go on while it is read. A task that stays in its state while the list
// is read is in the list; one that moves may be missing, or be there twice.
//
// Texts of tasks, such as arguments and errors, may contain anything, also terminal escapes and marks that change the
// direction of writing. Task.Call and String methods escape them; Printable does so for all other texts.
package inspect
