// Package dashboard tests package web from outside: in a real browser, and with texts that mean harm. It exports
// nothing.
package dashboard
