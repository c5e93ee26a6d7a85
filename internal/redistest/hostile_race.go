//go:build race

package redistest

const hostileBytes = 1 << 17
