//go:build ackfirst

package engine

const ackFirst = true
