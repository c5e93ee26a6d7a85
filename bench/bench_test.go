package main

import (
	"bytes"
	"strings"
	"testing"
)

// TestEveryFigure takes each figure of each peer once, with few tasks, to see that the program works.
func TestEveryFigure(t *testing.T) {
	if _, err := serverVersion(); err != nil {
		t.Fatal(err)
	}
	figures := figuresOf(1000, 5)
	r := newResults()
	for _, f := range figures {
		for _, p := range peers {
			if p.name == "asynq" && f.unit == "ms" {
				continue // it polls once a second: too long for a test
			}
			if p.name == "asynq" && f.name == "enqueue, 1,000 a call" {
				continue // it has no such call
			}
			value, ok, err := measure(f, p)
			if err != nil || !ok || value <= 0 {
				t.Fatalf("%s: %s: %v, %v, %v", p.name, f.name, value, ok, err)
			}
			r.add(f.name, p.name, value)
		}
	}
	var b bytes.Buffer
	r.print(&b, figures)
	for _, f := range figures {
		if !strings.Contains(b.String(), "| "+f.name+" |") {
			t.Errorf("no row for %s in\n%s", f.name, b.String())
		}
	}
}

func TestMedian(t *testing.T) {
	for _, tt := range []struct {
		values            []float64
		middle, low, high float64
	}{{[]float64{3, 1, 2}, 2, 1, 3}, {[]float64{4, 1, 2, 3}, 2.5, 1, 4}, {[]float64{7}, 7, 7, 7}} {
		if m, l, h := median(tt.values); m != tt.middle || l != tt.low || h != tt.high {
			t.Errorf("%v: %v, %v to %v", tt.values, m, l, h)
		}
	}
}

func TestNumber(t *testing.T) {
	for v, want := range map[float64]string{0.123: "0.12", 12.3: "12", 999: "999", 1234: "1,234", 1234567: "1,234,567"} {
		if got := number(v); got != want {
			t.Errorf("%v: %s, expected %s", v, got, want)
		}
	}
}
