// Package engine runs a worker: it claims tasks, calls their functions, tells Redis how they ended, and keeps the
// worker's heartbeat. It knows neither the public Task nor its options: the root package hands it a Config, and gets
// Claims and Events back.
//
// # Parts
//
// A Worker has one lane for each queue: its claims and its lease there. A Claim is one claimed task, from the reply of
// Redis until Redis has answered how the task ended. These goroutines work on them:
//
//	fetcher          1, and 1 for each claim call under way (at most 2)  ends with Run's context, after those replies
//	waiter           1 for each cluster slot (1 on a single server)      with Run's context; its connection is cut
//	mover, sweeper   1 each for each slot                                with Run's context
//	executors        Config.Concurrency                                  after their present task
//	finisher         1 for each queue                                    when all executors ended and Redis knows it
//	watchdog         1                                                   last
//	heartbeat        1 for each slot                                     last
//	follower         1 for each queue, reads its control hash            last
//	check at start   1, asks for settings and for unused queues          when answered, or with Run's context
//	Config.Beside    1 for each: the schedulers                          with Run's context
//	watches          1 for each limit: time, memory, empty queues        with Run's context
//	listeners        1, if there are any                                 when they have heard the last event
//
// Worker.Run waits for all of them. If handlers do not return, it returns a RunningError and leaves executors,
// finishers and heartbeats to go on: the claims are still this worker's.
//
// # Claims
//
// One script, claim.lua, takes new claims and acknowledges those that are done. Redis runs one script at a time, so
// under load Redis decides how fast a queue drains, and the worker keeps it busy:
//
//   - It claims ahead: more tasks than it has free executors, as many as the executors do in 5 ms, at most 800. It
//     measures handlers as they run. It believes a longer measurement at once and a shorter one by half each time. Ten
//     executors whose handlers take more than 50 ms claim nothing ahead. Config.Prefetch fixes the number instead.
//   - It makes few large calls: it claims again when half of what it claims ahead has started, or when 200 more fit,
//     and asks for at most 200 beyond the free executors. Scripts of several hundred tasks cost more for each task.
//   - It has two calls under way while a queue holds more than both take: Redis runs one while the worker decodes the
//     reply of the other. A worker with one executor makes one call at a time, so that it keeps the queue's order.
//   - Acknowledgements travel with claims. What is done waits with its lane for the next claim, at most 2 ms. The
//     lane's finisher sends what no claim takes along, and all other ends.
//   - No task waits behind a long handler. If a task that was claimed ahead has waited for 20 ms while all executors
//     are busy, the worker gives back everything that has not started. For the next 100 ms it claims only for free
//     executors.
//   - One wake-up at a time: an executor that takes a task wakes the next one if there is more. Short tasks are over
//     before that and cost no wake-ups.
//
// # Order
//
// Tasks that are given back go to the front of their queue. One batch of tasks takes one call: two calls would change
// the order of the tasks (Worker.giveBack, and the finisher's flush).
//
// # Stuck handlers
//
// A handler that ignores the end of its context keeps its claim and loses its executor: another executor runs tasks in
// its place. The watchdog sleeps until a running handler could be stuck, so short tasks cost it nothing. executors.over
// counts sound executors, executors.late those whose handlers were given up. A worker that stops because of stuck
// handlers waits only for the sound ones.
package engine
