package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
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

// of returns the figures of a table, in the order in which they were first taken.
func (r *results) of(table string) []*figure {
	var found []*figure
	for _, f := range r.Figures {
		if f.Table == table {
			found = append(found, f)
		}
	}
	return found
}

// merge adds the figures of other, and replaces those that both have.
func (r *results) merge(other *results) {
	for _, f := range other.Figures {
		if old := r.find(f.Table, f.Row, f.Measure); old != nil {
			*old = *f
		} else {
			r.Figures = append(r.Figures, f)
		}
	}
}

// write saves the results, a line for each figure, so that two files can be compared.
func (r *results) write(file string) error {
	head := *r
	head.Figures = nil
	b, err := json.MarshalIndent(head, "", "  ")
	if err != nil {
		return err
	}
	var out bytes.Buffer
	out.Write(bytes.TrimSuffix(b, []byte("null\n}")))
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
