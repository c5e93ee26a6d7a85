//go:build cgo

// Package crash ends this process by a fault in C code, which no recover of Go catches.
package crash

// static void fault(void) { *(volatile int *)8 = 1; } // writes where no memory is.
import "C"

// InC writes to an address that C code may not use.
func InC() { C.fault() }
