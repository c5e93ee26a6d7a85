package main

import (
	"fmt"
	"net"
	"os/exec"
	"strconv"
	"strings"

	"github.com/gomodule/redigo/redis"
)

// Scripts that claim and record the claims differently: a field for each task by one HSET each, or all fields by one
// HSET; one field for all tasks; a list for the claim.
const (
	claimEach = `local ts = redis.call('LPOP', KEYS[1], ARGV[1])
if not ts then return nil end
for i = 1, #ts do redis.call('HSET', KEYS[2], ARGV[2] .. i, ts[i]) end
return ts`
	claimOnce = `local ts = redis.call('LPOP', KEYS[1], ARGV[1])
if not ts then return nil end
local a, p = {}, ARGV[2]
for i = 1, #ts do a[2*i-1] = p .. i; a[2*i] = ts[i] end
redis.call('HSET', KEYS[2], unpack(a))
return ts`
	claimField = `local ts = redis.call('LPOP', KEYS[1], ARGV[1])
if not ts then return nil end
redis.call('HSET', KEYS[2], ARGV[2], cmsgpack.pack(ts))
return ts`
	claimList = `local ts = redis.call('LPOP', KEYS[1], ARGV[1])
if not ts then return nil end
redis.call('RPUSH', ARGV[2], unpack(ts))
return ts`
)

// tableA lets redis-benchmark send commands and scripts.
func (c *ceilingRun) tableA() error {
	binary, err := exec.LookPath("redis-benchmark")
	if err != nil {
		return fmt.Errorf("redis-benchmark is needed; it comes with redis-tools: %w", err)
	}
	c.head("(a) redis-benchmark, 50 connections", "a second")
	text := strings.Repeat("x", len(encodeBare(baseNumber, baseText))) // no NUL bytes in an argument
	for _, pipeline := range []int{1, 16, 100} {
		requests := c.n
		if pipeline == 1 {
			requests /= 2
		}
		for _, command := range [][]string{{"RPUSH", ceilingList, text}, {"LPOP", ceilingList}} {
			name := fmt.Sprintf("%s, pipeline of %d", command[0], pipeline)
			if err := c.benchmark(binary, name, 1, pipeline, requests, command); err != nil {
				return err
			}
		}
	}
	for _, script := range []struct{ name, source string }{
		{"HSET each", claimEach}, {"one HSET", claimOnce}, {"one field", claimField}, {"own list", claimList},
	} {
		sha, err := redis.String(c.ctl.Do("SCRIPT", "LOAD", script.source))
		if err != nil {
			return err
		}
		for _, k := range []int{1, 10, 100} {
			for _, pipeline := range []int{1, 16} {
				requests := c.n / k
				if pipeline == 1 && k == 1 {
					requests /= 2
				}
				name := fmt.Sprintf("claim of %d, %s, pipeline of %d: tasks", k, script.name, pipeline)
				call := []string{"EVALSHA", sha, "2", ceilingList, ceilingHeld, strconv.Itoa(k), "worker0123456789-"}
				if err := c.benchmark(binary, name, k, pipeline, requests, call); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// benchmark prints how many tasks a second redis-benchmark's requests handle, with each tasks in a request.
func (c *ceilingRun) benchmark(binary, name string, each, pipeline, requests int, command []string) error {
	host, port, _ := net.SplitHostPort(c.server.addr)
	args := append([]string{
		"-h", host, "-p", port, "-c", "50", "-P", strconv.Itoa(pipeline), "-n", strconv.Itoa(requests), "--csv",
	}, command...)
	return c.row(name, 1, func() (bareRun, error) {
		if _, err := c.ctl.Do("FLUSHALL"); err != nil {
			return bareRun{}, err
		}
		if command[0] != "RPUSH" {
			if err := c.fill(requests * each); err != nil {
				return bareRun{}, err
			}
		}
		out, err := exec.Command(binary, args...).Output()
		if err != nil {
			return bareRun{}, err
		}
		perSecond, err := lastOfCSV(string(out))
		return bareRun{perSecond: perSecond * float64(each)}, err
	})
}

// lastOfCSV returns the requests per second of redis-benchmark's last line.
func lastOfCSV(out string) (float64, error) {
	lines := strings.Split(strings.TrimSpace(out), "\n")
	fields := strings.Split(lines[len(lines)-1], `","`)
	if len(fields) < 2 {
		return 0, fmt.Errorf("expected CSV of redis-benchmark, found %q", out)
	}
	return strconv.ParseFloat(strings.Trim(fields[1], `"`), 64)
}
