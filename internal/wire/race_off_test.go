//go:build !race

package wire

// memSlack is the factor by which a build with the race detector allocates more; this one has none.
const memSlack = 1
