// Package expectations has tests of a program.
package expectations
