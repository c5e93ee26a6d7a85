package main

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
)

// processCPU returns user and system seconds of this process.
func processCPU() float64 {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return float64(u.Utime.Nano()+u.Stime.Nano()) / 1e9
}

// clockTick is the unit of times in /proc, a hundredth of a second on every Linux that Go runs on.
const clockTick = 100.0

// treeCPU returns user and system seconds of a process and of all its descendants, including ended ones for which their
// parents have waited.
func treeCPU(pid int) float64 {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0
	}
	// The second field is the program's name in parentheses, and may hold spaces.
	fields := strings.Fields(string(b[strings.LastIndexByte(string(b), ')')+1:]))
	var ticks float64
	for _, i := range []int{11, 12, 13, 14} { // utime, stime, cutime, cstime
		v, _ := strconv.ParseFloat(fields[i], 64)
		ticks += v
	}
	sum := ticks / clockTick
	for _, child := range children(pid) {
		sum += treeCPU(child)
	}
	return sum
}

// treeRSS returns the resident memory, in bytes, of a process and its descendants.
func treeRSS(pid int) float64 {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/statm", pid))
	if err != nil {
		return 0
	}
	fields := strings.Fields(string(b))
	if len(fields) < 2 {
		return 0
	}
	pages, _ := strconv.ParseFloat(fields[1], 64)
	sum := pages * float64(os.Getpagesize())
	for _, child := range children(pid) {
		sum += treeRSS(child)
	}
	return sum
}

// children returns the processes that any thread of pid has started.
func children(pid int) []int {
	threads, err := os.ReadDir(fmt.Sprintf("/proc/%d/task", pid))
	if err != nil {
		return nil
	}
	var found []int
	for _, thread := range threads {
		b, _ := os.ReadFile(fmt.Sprintf("/proc/%d/task/%s/children", pid, thread.Name()))
		for field := range strings.FieldsSeq(string(b)) {
			if child, err := strconv.Atoi(field); err == nil {
				found = append(found, child)
			}
		}
	}
	return found
}
