//go:build race

package wire

// memSlack is by how much more a build with the race detector allocates: it gives each small object 16 bytes.
const memSlack = 2
