// Package redisstore is a queue as Redis holds it. It alone knows keys, scripts and connections; it knows neither
// functions nor workers. Each method of Store is one script of lua/ or one read; each file has one family of scripts.
//
// # How concurrent enqueues share calls
//
// Each pending list has one Coalescer for each handle and number of replicas to wait for. Queues hold it, and it goes
// when the last of them goes. A caller that finds no call under way sends its task itself, at once. A caller that finds
// one adds its task to the last bundle of its script (enqueue, schedule, enlist or gather) and waits. A runner, a
// goroutine that lives only while tasks wait, gets a connection, takes the first bundle, sends it and passes the
// outcome to all its callers. A caller whose context can end never sends itself, even if alone: nobody else's call may
// depend on its context. DelayMany and the settling of the form of Python tasks make calls of their own.
//
//   - Two calls may be under way at once. With one, producers that come in bursts wait for two round trips; with four,
//     there are twice as many calls with half as many tasks each, which costs more than it saves. A runner that is not
//     alone yields once before it takes a bundle, so that callers which the last reply has woken can join.
//   - A caller can take its task back until a runner takes the bundle: the task's place in the arguments becomes nil.
//     From then on the caller can only leave with ErrUnknown, and the memory of its message is not used again.
//   - The outcome of a task is that of its own caller. enlist returns for each task whether another one stands in its
//     place; the coalescer sends it the rule skip in place of fail, which would refuse the tasks of all, and makes the
//     error itself. If Redis refuses a call of several tasks for what may be the fault of one, an id that is taken or a
//     key of another type, nothing was written, and the runner sends each task alone.
//   - Bundles of different scripts go in the order in which they were begun. So the order of two tasks is kept within
//     a script, and for callers that wait for one task before they enqueue the next; nobody can tell another order.
//   - With Store.Wait, WAIT goes in the same request as the script, once for each bundle. It lasts four fifths of the
//     longest time that one of the callers has, so that the answer arrives before the caller gives up. In a cluster, a
//     node that refuses the script because of its slot answers that WAIT with a meaningless number, so package
//     rediscluster sends WAIT again behind the script.
//   - A runner that gets no connection reports the error to all waiting callers, who would otherwise try one after the
//     other. When all of them have left, its wait for a connection is canceled.
//   - If tasks wait and no call has ended for 100 ms, the coalescer gives up the calls under way: their callers go on
//     waiting, and other calls take their places, up to the number of connections. The epoch distinguishes the calls.
//   - A panic of a Source reaches a caller that sends itself. In a runner it becomes the error of all waiting callers.
//
// # Messages to this process
//
// Signals holds one Pub/Sub connection for each handle, whatever subscribes. It connects with the first subscription,
// closes ten seconds after the last one, and connects anew every five minutes, because a server that has left its
// cluster publishes nothing and does not say so. Each confirmed subscription reaches the subscriber as an empty message
// that means "look": so a message that was lost with a connection does no harm.
package redisstore
