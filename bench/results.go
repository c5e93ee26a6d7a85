package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"slices"
)

// results are the values of all rounds, by figure and peer.
type results struct {
	values map[string]map[string][]float64
}

func newResults() *results { return &results{map[string]map[string][]float64{}} }

func (r *results) add(figure, peer string, value float64) {
	if r.values[figure] == nil {
		r.values[figure] = map[string][]float64{}
	}
	r.values[figure][peer] = append(r.values[figure][peer], value)
}

// median returns the middle of values and their range.
func median(values []float64) (middle, low, high float64) {
	sorted := slices.Sorted(slices.Values(values))
	n := len(sorted)
	middle = sorted[n/2]
	if n%2 == 0 {
		middle = (sorted[n/2-1] + sorted[n/2]) / 2
	}
	return middle, sorted[0], sorted[n-1]
}

// print writes a table in Markdown: medians, ranges, and how many times better the first peer is than the second.
func (r *results) print(w io.Writer, figures []figure) {
	fmt.Fprintf(w, "| figure | unit |")
	for _, p := range peers {
		fmt.Fprintf(w, " %s |", p.name)
	}
	fmt.Fprintf(w, " ratio |\n|---|---|")
	for range peers {
		fmt.Fprint(w, "---|")
	}
	fmt.Fprintln(w, "---|")
	for _, f := range figures {
		fmt.Fprintf(w, "| %s | %s |", f.name, f.unit)
		var middles []float64
		for _, p := range peers {
			values := r.values[f.name][p.name]
			if len(values) == 0 {
				fmt.Fprint(w, " none |")
				continue
			}
			middle, low, high := median(values)
			middles = append(middles, middle)
			fmt.Fprintf(w, " %s (%s–%s) |", number(middle), number(low), number(high))
		}
		ratio := "–"
		if len(middles) == 2 && middles[0] > 0 && middles[1] > 0 {
			times := middles[0] / middles[1]
			if f.less {
				times = 1 / times
			}
			ratio = fmt.Sprintf("%.1f", times)
		}
		fmt.Fprintf(w, " %s |\n", ratio)
	}
}

// number prints a value with three digits or, above a thousand, without a fraction.
func number(v float64) string {
	switch {
	case v >= 1000:
		s := fmt.Sprintf("%.0f", v)
		for i := len(s) - 3; i > 0; i -= 3 {
			s = s[:i] + "," + s[i:]
		}
		return s
	case v >= 10:
		return fmt.Sprintf("%.0f", v)
	default:
		return fmt.Sprintf("%.2f", v)
	}
}

// write saves all values as JSON.
func (r *results) write(file string) error {
	b, err := json.MarshalIndent(r.values, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(file, append(b, '\n'), 0o600)
}
