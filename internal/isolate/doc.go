// Package isolate runs work in child processes of the same binary, so that it can be killed and its crash costs nobody
// else. A Pool keeps children that have done their set-up and wait; each runs one job at a time. Jobs, verdicts and
// reports are bytes to this package: what they mean is up to its callers.
//
// Parent and child speak over three pipes: jobs (parent to child), orders (parent to child: the end of a job's context,
// and requests for a dump of the goroutines) and answers (child to parent). A frame is four bytes of length, a byte for
// its kind, and that many bytes. The child reads jobs on the goroutine that runs them, so that a job costs no hand-over
// between goroutines in the child; another goroutine waits for orders.
//
// A child leads a process group of its own. Whatever it has started there ends with it. It ends when the parent ends,
// whichever way: Linux kills it, and elsewhere it notices that the pipe of orders was closed.
package isolate
