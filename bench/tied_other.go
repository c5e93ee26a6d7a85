//go:build !linux

package main

import "os/exec"

// startTied only starts the process: figures are taken on Linux.
func startTied(cmd *exec.Cmd) (release func(), err error) { return func() {}, cmd.Start() }
