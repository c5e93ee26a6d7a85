package main

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"

	"github.com/gomodule/redigo/redis"
)

// snapshot is what a redis-server reports about itself at one moment.
type snapshot struct {
	cpu    float64 // user and system seconds
	memory float64 // used_memory, bytes
	calls  map[string]float64
	micros map[string]float64 // time within each command, µs
}

// takeSnapshot asks the server at addr, with one command, which since leaves out.
func takeSnapshot(addr string) (*snapshot, error) {
	conn, err := redis.Dial("tcp", addr)
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	text, err := redis.String(conn.Do("INFO", "everything"))
	return parseInfo(text), err
}

func parseInfo(text string) *snapshot {
	s := &snapshot{calls: map[string]float64{}, micros: map[string]float64{}}
	for line := range strings.Lines(text) {
		key, value, _ := strings.Cut(strings.TrimSpace(line), ":")
		v, _ := strconv.ParseFloat(value, 64)
		switch command, stat := strings.CutPrefix(key, "cmdstat_"); {
		case stat: // calls=21,usec=175,usec_per_call=8.33,…
			for part := range strings.SplitSeq(value, ",") {
				name, number, _ := strings.Cut(part, "=")
				v, _ := strconv.ParseFloat(number, 64)
				switch name {
				case "calls":
					s.calls[command] = v
				case "usec":
					s.micros[command] = v
				}
			}
		case key == "used_memory":
			s.memory = v
		case key == "used_cpu_user", key == "used_cpu_sys":
			s.cpu += v
		}
	}
	return s
}

// since returns what happened between an earlier snapshot and s. Memory is the growth.
func (s *snapshot) since(before *snapshot) *snapshot {
	d := &snapshot{
		cpu: s.cpu - before.cpu, memory: s.memory - before.memory,
		calls: map[string]float64{}, micros: map[string]float64{},
	}
	for command, n := range s.calls {
		if n -= before.calls[command]; n > 0 && command != "info" {
			d.calls[command] = n
			d.micros[command] = s.micros[command] - before.micros[command]
		}
	}
	return d
}

// commands returns how many commands the server executed, including those within scripts.
func (s *snapshot) commands() float64 {
	var sum float64
	for _, n := range s.calls {
		sum += n
	}
	return sum
}

// scripts returns how many scripts ran, and the µs that they took.
func (s *snapshot) scripts() (calls, micros float64) {
	return s.calls["evalsha"] + s.calls["eval"], s.micros["evalsha"] + s.micros["eval"]
}

// processCPU returns user and system seconds of this process.
func processCPU() float64 {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return float64(u.Utime.Nano()+u.Stime.Nano()) / 1e9
}

// treeCPU returns user and system seconds of a process and of all its descendants, including ended ones for which their
// parents have waited.
func treeCPU(pid int) (seconds float64) {
	for _, pid := range tree(pid) {
		b, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		// The second field is the program's name in parentheses, and may hold spaces.
		fields := strings.Fields(string(b[strings.LastIndexByte(string(b), ')')+1:]))
		for i := 11; i < min(15, len(fields)); i++ { // utime, stime, cutime, cstime, in hundredths of a second
			ticks, _ := strconv.ParseFloat(fields[i], 64)
			seconds += ticks / 100
		}
	}
	return seconds
}

// treeRSS returns the resident memory, in bytes, of a process and its descendants.
func treeRSS(pid int) (bytes float64) {
	for _, pid := range tree(pid) {
		b, _ := os.ReadFile(fmt.Sprintf("/proc/%d/statm", pid))
		if fields := strings.Fields(string(b)); len(fields) > 1 {
			pages, _ := strconv.ParseFloat(fields[1], 64)
			bytes += pages * float64(os.Getpagesize())
		}
	}
	return bytes
}

// tree returns a process and its descendants.
func tree(pid int) []int {
	found := []int{pid}
	threads, _ := os.ReadDir(fmt.Sprintf("/proc/%d/task", pid))
	for _, thread := range threads {
		b, _ := os.ReadFile(fmt.Sprintf("/proc/%d/task/%s/children", pid, thread.Name()))
		for field := range strings.FieldsSeq(string(b)) {
			if child, err := strconv.Atoi(field); err == nil {
				found = append(found, tree(child)...)
			}
		}
	}
	return found
}
