package engine

import (
	"bytes"
	"os"
	"runtime/metrics"
	"strconv"
)

// memoryUsed returns the memory of the process in bytes: what is resident, where the system reports it (Linux), else
// what the Go runtime has from the system.
func memoryUsed() int64 {
	if statm, err := os.ReadFile("/proc/self/statm"); err == nil {
		if fields := bytes.Fields(statm); len(fields) > 1 {
			if pages, err := strconv.ParseInt(string(fields[1]), 10, 64); err == nil {
				return pages * int64(os.Getpagesize())
			}
		}
	}
	return runtimeMemory()
}

// runtimeMemory returns the bytes that the Go runtime has from the system and has not returned.
func runtimeMemory() int64 {
	samples := []metrics.Sample{{Name: "/memory/classes/total:bytes"}, {Name: "/memory/classes/heap/released:bytes"}}
	metrics.Read(samples)
	for _, s := range samples {
		if s.Value.Kind() != metrics.KindUint64 {
			return 0
		}
	}
	return int64(samples[0].Value.Uint64() - samples[1].Value.Uint64()) //nolint:gosec // far below 2⁶³
}
