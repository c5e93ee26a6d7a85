//go:build race

package wire

// memSlack is the factor by which a build with the race detector allocates more: it gives each small object 16 bytes.
const memSlack = 2
