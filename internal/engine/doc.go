// Package engine runs a worker: it starts and stops what its rooms do, and carries out what others order. It knows
// neither the public Task nor its options: the root package gives it a Config and a child.Program, and gets Claims and
// Events back.
//
// # Rooms
//
// A Worker has one lane.Lane for each queue. A claim goes from fetch.Fetcher to fetch.Receiver, which parses the
// message, to exec.Executors, whose exec.Runner calls the function, and to a finish.Finisher. Beside them run
// beat.Heartbeat and move.Mover. Each package imports only those before it: lane, events and child, finish, exec,
// fetch, move, beat.
//
// These are the goroutines of a worker, and when they end:
//
//	fetcher          1, and 1 for each claim call in flight (at most 2)  with Run's context, after those replies
//	waiter           1 for each cluster slot (1 on a single server)      with Run's context, which cuts its connection
//	mover, sweeper   1 each for each slot                                with Run's context
//	executors        Config.Concurrency                                  after their present task
//	finisher         1 for each queue                                    when Redis knows how all tasks have ended
//	watchdog         1                                                   last
//	heartbeat        1 for each slot                                     last
//	follower         1 for each queue, reads its control hash            last
//	afterStart       1, asks for settings and for unused queues          when answered, or with Run's context
//	Config.Beside    1 for each: the schedulers                          with Run's context
//	watches          1 for each limit: time, memory, empty queues        with Run's context
//	listeners        1, if there are any                                 when they have returned from the last event
//
// Worker.Run waits for all of them. If handlers do not return, it returns a RunningError, and executors, finishers and
// heartbeats go on: the claims are still this worker's.
//
// # Claims
//
// One script, claim.lua, claims tasks and acknowledges done claims. Redis runs one script at a time. So under load
// Redis limits how fast a queue drains, and the worker must keep Redis busy:
//
//   - It claims ahead: more tasks than it has free executors, as many as the executors do in 5 ms, at most 800. It
//     measures how long handlers take: a longer measurement counts at once, a shorter one only by half. Ten executors
//     whose handlers take more than 50 ms claim nothing ahead. Config.Prefetch fixes the number instead.
//   - It makes few large calls: it claims again when half of what it claims ahead has started, or when 200 more tasks
//     fit. It asks for at most 200 beyond the free executors: in larger calls Redis takes longer for each task.
//   - It has two calls in flight while a queue has enough tasks for both: Redis runs one while the worker decodes the
//     reply of the other. A worker with one executor makes one call at a time, so that it keeps the queue's order.
//   - Claim calls carry acknowledgements. A done claim waits for the next claim call, at most 2 ms. Otherwise the
//     lane's finisher acknowledges it. Finishers also send all other ends of claims.
//   - No task waits behind a long handler. If a task that was claimed ahead has waited for 20 ms while all executors
//     are busy, the worker gives back everything that has not started. For the next 100 ms it claims only for free
//     executors.
//   - One wake-up at a time: an executor that takes a task wakes the next one if more tasks are ready. Short tasks end
//     before that and cost no wake-ups.
//
// # Order
//
// Tasks that the worker gives back go to the front of their queue, in one call: the second of two calls would put its
// tasks in front of those of the first (lane.GiveBack, Finisher.Release, Finisher.Flush).
//
// # Stuck handlers
//
// A handler that ignores the end of its context keeps its claim and loses its executor, which another one replaces. The
// watchdog sleeps until a running handler could be stuck, so short tasks cost it nothing. Executors.Stuck counts
// executors with stuck handlers, Executors.Sound the others. A worker that stops because of stuck handlers waits only
// for the sound ones.
package engine
