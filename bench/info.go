package main

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/gomodule/redigo/redis"
)

// snapshot is what a redis-server reports about itself at one moment.
type snapshot struct {
	cpu      float64 // user and system seconds
	memory   float64 // used_memory, bytes
	resident float64 // used_memory_rss, bytes
	calls    map[string]float64
	micros   map[string]float64 // time within each command, µs
}

// takeSnapshot asks the server at addr, with one command that the server counts too.
func takeSnapshot(addr string) (*snapshot, error) {
	conn, err := redis.Dial("tcp", addr)
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	text, err := redis.String(conn.Do("INFO", "everything"))
	if err != nil {
		return nil, err
	}
	return parseInfo(text)
}

func parseInfo(text string) (*snapshot, error) {
	s := &snapshot{calls: map[string]float64{}, micros: map[string]float64{}}
	single := map[string]*float64{"used_memory": &s.memory, "used_memory_rss": &s.resident}
	for line := range strings.Lines(text) {
		key, value, ok := strings.Cut(strings.TrimSpace(line), ":")
		if !ok {
			continue
		}
		if target := single[key]; target != nil {
			v, err := strconv.ParseFloat(value, 64)
			if err != nil {
				return nil, fmt.Errorf("INFO: %s: expected a number, found %q", key, value)
			}
			*target = v
		}
		if key == "used_cpu_user" || key == "used_cpu_sys" {
			v, _ := strconv.ParseFloat(value, 64)
			s.cpu += v
		}
		if command, ok := strings.CutPrefix(key, "cmdstat_"); ok {
			s.calls[command], s.micros[command] = commandStat(value)
		}
	}
	return s, nil
}

// commandStat reads calls=21,usec=175,usec_per_call=8.33,….
func commandStat(value string) (calls, micros float64) {
	for part := range strings.SplitSeq(value, ",") {
		name, number, _ := strings.Cut(part, "=")
		v, _ := strconv.ParseFloat(number, 64)
		switch name {
		case "calls":
			calls = v
		case "usec":
			micros = v
		}
	}
	return calls, micros
}

// since returns what happened between an earlier snapshot and s. Memory is the growth.
func (s *snapshot) since(before *snapshot) *snapshot {
	d := &snapshot{
		cpu: s.cpu - before.cpu, memory: s.memory - before.memory, resident: s.resident - before.resident,
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
	for _, command := range []string{"evalsha", "eval", "fcall"} {
		calls += s.calls[command]
		micros += s.micros[command]
	}
	return calls, micros
}
