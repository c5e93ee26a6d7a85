// Package itest holds the tests that need more than one process, server or language, and dependencies that the root
// module should not have. It exports nothing.
package itest
