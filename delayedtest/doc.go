// Package delayedtest is for tests of programs that delay work: it shows what was enqueued, and runs it when the test
// wants it.
//
//	func TestSignUp(t *testing.T) {
//		q := delayedtest.NewQueue(t)
//		signUp(q, 42)
//		delayedtest.RequireEnqueued(t, q, mail.Welcome, 42, "en") // a reminder too, a week later
//		delayedtest.Drain(t, q, mail.Welcome, mail.Remind)        // runs both, now
//	}
//
// Each NewQueue and NewRedis starts a small Redis within the process (package embedded) that ends with its test, so
// that tests may run in parallel and need nothing installed. What Redis and a worker do is done here too: arguments are
// encoded and decoded, failed tasks are tried again, options hold.
//
// The server's time stands still, beginning with the time of the test's start, and moves on only by Drain, Run and
// Advance: what is delayed by a week is run by Drain at once, in its order. In, At and options count by that time,
// which Now returns; the clock of the process does not move with it.
package delayedtest
