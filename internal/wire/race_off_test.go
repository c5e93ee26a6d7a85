//go:build !race

package wire

// memSlack is by how much more a build with the race detector would allocate.
const memSlack = 1
