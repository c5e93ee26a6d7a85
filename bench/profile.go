package main

import (
	"errors"
	"os"
	"runtime"
	"runtime/pprof"
)

// startProfile writes prefix.cpu.pprof and, when the returned function is called, prefix.allocs.pprof. An empty prefix
// does nothing.
func startProfile(prefix string) (stop func() error, err error) {
	if prefix == "" {
		return func() error { return nil }, nil
	}
	runtime.MemProfileRate = 4096
	f, err := os.Create(prefix + ".cpu.pprof")
	if err != nil {
		return nil, err
	}
	if err := pprof.StartCPUProfile(f); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return func() error {
		pprof.StopCPUProfile()
		g, err := os.Create(prefix + ".allocs.pprof")
		if err != nil {
			return errors.Join(err, f.Close())
		}
		return errors.Join(f.Close(), pprof.Lookup("allocs").WriteTo(g, 0), g.Close())
	}, nil
}
