//go:build !ackfirst

package engine

// ackFirst acknowledges tasks before they run. It exists so that the kill test can show that it notices lost tasks.
const ackFirst = false
