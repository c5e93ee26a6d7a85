package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"os/exec"
	"runtime"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"time"
)

// results are everything that one run of a command has found.
type results struct {
	Command string    `json:"command"` // as it was given
	Date    string    `json:"date"`    // of the begin, UTC
	Minutes float64   `json:"minutes"` // how long it took
	Machine machine   `json:"machine"`
	Peers   []seen    `json:"peers"`
	Figures []*figure `json:"figures"`
}

// seen describes a peer and whether it was found.
type seen struct {
	Name    string `json:"name"`
	Version string `json:"version,omitempty"`
	About   string `json:"about,omitempty"`
	Missing string `json:"missing,omitempty"` // why it was not measured
}

// figure is one measured quantity: a value of each peer in each round.
type figure struct {
	Table   string               `json:"table"`   // which table it belongs to
	Row     string               `json:"row"`     // what was done
	Measure string               `json:"measure"` // what was measured, with its unit in brackets
	Less    bool                 `json:"less,omitempty"`
	Values  map[string][]float64 `json:"values"` // by peer, in order of the rounds
}

// add records a value of one round.
func (r *results) add(table, row, measure string, less bool, peer string, value float64) {
	f := r.find(table, row, measure)
	if f == nil {
		f = &figure{Table: table, Row: row, Measure: measure, Less: less, Values: map[string][]float64{}}
		r.Figures = append(r.Figures, f)
	}
	f.Values[peer] = append(f.Values[peer], value)
}

// find returns a figure, or nil.
func (r *results) find(table, row, measure string) *figure {
	for _, f := range r.Figures {
		if f.Table == table && f.Row == row && f.Measure == measure {
			return f
		}
	}
	return nil
}

// write saves the results, a line for each figure, so that two files can be compared.
func (r *results) write(file string) error {
	head := *r
	head.Figures = nil
	b, err := json.MarshalIndent(head, "", "  ")
	if err != nil {
		return err
	}
	out := bytes.NewBuffer(bytes.TrimSuffix(b, []byte("null\n}")))
	out.WriteString("[")
	for i, f := range r.Figures {
		line, err := json.Marshal(f)
		if err != nil {
			return err
		}
		if i > 0 {
			out.WriteString(",")
		}
		out.WriteString("\n    ")
		out.Write(line)
	}
	out.WriteString("\n  ]\n}\n")
	return os.WriteFile(file, out.Bytes(), 0o644)
}

// readResults reads what write wrote.
func readResults(file string) (*results, error) {
	b, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	var r results
	if err := json.Unmarshal(b, &r); err != nil {
		return nil, fmt.Errorf("%s: expected what a command of bench wrote with -json: %w", file, err)
	}
	if len(r.Figures) == 0 {
		return nil, fmt.Errorf("%s holds no figures; take them again with -json %s", file, file)
	}
	return &r, nil
}

// spread is the median of some values, and the smallest and the largest.
type spread struct{ Middle, Low, High float64 }

// spreadOf returns the spread of values, which is NaN if there are none.
func spreadOf(values []float64) spread {
	if len(values) == 0 {
		return spread{math.NaN(), math.NaN(), math.NaN()}
	}
	sorted := slices.Sorted(slices.Values(values))
	n := len(sorted)
	return spread{(sorted[(n-1)/2] + sorted[n/2]) / 2, sorted[0], sorted[n-1]}
}

// quantile returns the value that a part q of the values does not exceed. It sorts them.
func quantile(values []float64, q float64) float64 {
	if len(values) == 0 {
		return math.NaN()
	}
	slices.Sort(values)
	return values[min(len(values)-1, max(0, int(math.Ceil(q*float64(len(values))))-1))]
}

// better compares delayed with another peer, so that more than 1 always means that delayed is ahead: the median and the
// range of the ratios of single rounds. Both peers took turns in each round, so changes of the machine's speed between
// rounds do not affect the ratios.
func (f *figure) better(other string) (spread, bool) {
	a, b := f.Values["delayed"], f.Values[other]
	if f.Less {
		a, b = b, a
	}
	var ratios []float64
	for i := range min(len(a), len(b)) {
		if b[i] != 0 {
			ratios = append(ratios, a[i]/b[i])
		}
	}
	return spreadOf(ratios), len(ratios) > 0
}

// number prints a value with two or three digits or, above a thousand, without a fraction.
func number(v float64) string {
	switch {
	case v >= 999.5:
		return count(int(v + 0.5))
	case v >= 9.95:
		return fmt.Sprintf("%.0f", v)
	case v >= 0.095 || v == 0:
		return fmt.Sprintf("%.2f", v)
	default:
		return fmt.Sprintf("%.2g", v)
	}
}

// count prints a whole number.
func count(n int) string {
	s := strconv.Itoa(n)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

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
	var kb float64
	_, _ = fmt.Sscan(field("/proc/meminfo", "MemTotal"), &kb)
	m.Memory = fmt.Sprintf("%.0f GiB", kb/(1<<20))
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

// commit returns the revision that this program was built from, "" when it was built outside a checkout.
func commit() string {
	out, err := exec.Command("git", "describe", "--always", "--dirty= with changes", "--exclude=*").Output()
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(out))
}

// moduleVersion returns the version of a module that this program is built with.
func moduleVersion(path string) (string, error) {
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, m := range info.Deps {
			if m.Path == path {
				return strings.TrimPrefix(m.Version, "v"), nil
			}
		}
	}
	return "", fmt.Errorf("this program was built without module %s; build it with `go build` in bench", path)
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
		if s.Version, err = p.version(); err != nil {
			s.Missing = err.Error()
		} else {
			installed = append(installed, p)
		}
		r.Peers = append(r.Peers, s)
	}
	return r, installed, nil
}
