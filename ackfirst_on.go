//go:build ackfirst

package delayed

const ackFirst = true
