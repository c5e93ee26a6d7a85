// Package lua holds the scripts that change queues in Redis, each a change of state. README.md tells which there are.
package lua

import "embed"

// Files are the scripts, NAME.lua.
//
//go:embed *.lua
var Files embed.FS
