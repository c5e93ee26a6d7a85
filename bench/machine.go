package main

import (
	"fmt"
	"os"
	"runtime"
	"strings"
	"time"
)

// machine describes where figures were taken.
type machine struct {
	Cores     int    `json:"cores"`
	Processor string `json:"processor"`
	Memory    string `json:"memory"`
	System    string `json:"system"`
	Go        string `json:"go"`
	Redis     string `json:"redis"`
	Commit    string `json:"commit,omitempty"` // of this tree
}

func thisMachine() (machine, error) {
	redis, err := serverVersion()
	if err != nil {
		return machine{}, err
	}
	m := machine{
		Cores: runtime.NumCPU(), Go: strings.TrimPrefix(runtime.Version(), "go"), Redis: redis,
		Processor: field("/proc/cpuinfo", "model name"), System: runtime.GOOS + "/" + runtime.GOARCH, Commit: commit(),
	}
	if strings.Contains(field("/proc/cpuinfo", "flags"), "hypervisor") {
		m.Processor += ", virtual machine"
	}
	if kb := field("/proc/meminfo", "MemTotal"); kb != "" {
		var v float64
		_, _ = fmt.Sscan(kb, &v)
		m.Memory = fmt.Sprintf("%.0f GiB", v/(1<<20))
	}
	if b, err := os.ReadFile("/proc/sys/kernel/osrelease"); err == nil {
		version, _, _ := strings.Cut(strings.TrimSpace(string(b)), "-")
		m.System += ", Linux " + version
	}
	return m, nil
}

// field returns the value after the first occurrence of a name in a file of lines "name: value".
func field(file, name string) string {
	b, _ := os.ReadFile(file)
	for line := range strings.Lines(string(b)) {
		key, value, ok := strings.Cut(line, ":")
		if ok && strings.TrimSpace(key) == name {
			return strings.TrimSpace(value)
		}
	}
	return ""
}

// String describes the machine in a line.
func (m machine) String() string {
	return fmt.Sprintf("%d cores (%s), %s, %s, Go %s, redis-server %s", m.Cores, m.Processor, m.Memory, m.System, m.Go,
		m.Redis)
}

// newResults begins the record of a run with the given peers; it leaves those out that are not installed.
func newResults(line string, peers []*peer) (r *results, installed []*peer, err error) {
	m, err := thisMachine()
	if err != nil {
		return nil, nil, err
	}
	r = &results{Command: line, Date: time.Now().UTC().Format("2006-01-02 15:04"), Machine: m}
	for _, p := range peers {
		s := seen{Name: p.name, About: p.about}
		version, err := p.version()
		if err != nil {
			s.Missing = err.Error()
		} else {
			s.Version = version
			installed = append(installed, p)
		}
		r.Peers = append(r.Peers, s)
	}
	return r, installed, nil
}
