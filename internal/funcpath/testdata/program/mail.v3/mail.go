// Package mail lies in a directory with a dot, which the runtime escapes.
package mail

// Mailer has one method of each kind.
type Mailer struct{ sent int }

// Send is a method of the pointer.
func (m *Mailer) Send(n int) { m.sent += n }

// Sent is a method of the value.
func (m Mailer) Sent() int { return m.sent }

// Welcome is a plain function.
func Welcome(int, string) {}

// Later returns a function literal, which may be inlined into the caller.
func Later() func() { n := 0; return func() { n++ } }

// Twice is generic.
func Twice[T any](v T) [2]T { return [2]T{v, v} }
