package chart

import (
	"fmt"
	"math"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/godelayed/delayed/inspect"
	"github.com/godelayed/delayed/web/internal/format"
)

// aChart returns a chart of the given values, one a minute.
func aChart(lines bool, all ...Series) *Chart {
	c := &Chart{ID: "x", Title: "Runs", Lines: lines, Series: all, Value: writeCount, Empty: "Nothing has run."}
	c.timeAxis(time.Date(2026, 3, 1, 12, 2, 0, 0, time.UTC), time.Minute, len(all[0].Values))
	return c
}

// pathOf returns the path of a class in a picture.
func pathOf(t *testing.T, svg, class string) string {
	t.Helper()
	found := regexp.MustCompile(`<path class="` + class + `" d="([^"]*)"/>`).FindStringSubmatch(svg)
	if found == nil {
		t.Fatalf("no path %q in %s", class, svg)
	}
	return found[1]
}

func TestLinesEndAtGaps(t *testing.T) {
	t.Parallel()
	c := aChart(true, Series{"half", "s1", []float64{1, 2, gap, gap, 4, gap, 0, 3}})
	svg := string(c.SVG())
	if got, want := pathOf(t, svg, "line s1"), "M0.5 75L1.5 50M4.5 0h.01M6.5 100L7.5 25"; got != want {
		t.Errorf("found %s, expected %s", got, want)
	}
	if got, want := pathOf(t, svg, "line dot s1"), "M4.5 0h.01"; got != want {
		t.Errorf("found the points %s, expected %s", got, want)
	}
	area := "M0.5 100L0.5 75L1.5 50V100ZM4.5 100L4.5 0V100ZM6.5 100L6.5 100L7.5 25V100Z"
	if got := pathOf(t, svg, "area s1"); got != area {
		t.Errorf("found %s, expected %s", got, area)
	}
	hits := regexp.MustCompile(`<rect class="hit" x="(\d+)" width="1" height="100"><title>([^<]*)</title>`).
		FindAllStringSubmatch(svg, -1)
	var shown []string
	for _, h := range hits {
		shown = append(shown, h[1]+" "+h[2])
	}
	want := []string{
		"0 12:02: half 1", "1 12:03: half 2", "4 12:06: half 4", "6 12:08: half 0", "7 12:09: half 3",
	}
	if !slices.Equal(shown, want) {
		t.Errorf("it shows %q, expected %q", shown, want)
	}
	rows := c.Rows()
	if len(rows) != 5 || rows[0].Name != "12:09" || rows[0].Values[0] != "3" {
		t.Errorf("the table has %+v", rows)
	}
}

func TestColumnsStandOnEachOther(t *testing.T) {
	t.Parallel()
	c := aChart(false, Series{"good", "s3", []float64{6, 0, 3}}, Series{"bad", "s2", []float64{2, 0, gap}})
	svg := string(c.SVG())
	if got, want := pathOf(t, svg, "column s3"), "M0.1 25h.8v75h-.8zM2.1 62.5h.8v37.5h-.8z"; got != want {
		t.Errorf("found %s, expected %s", got, want)
	}
	if got, want := pathOf(t, svg, "column s2"), "M0.1 0h.8v25h-.8z"; got != want {
		t.Errorf("found %s, expected %s", got, want)
	}
	if n := strings.Count(svg, `class="hit"`); n != 2 {
		t.Errorf("%d places show values, expected 2: nothing has run in the other", n)
	}
	for _, forbidden := range []string{"style=", "onclick", "<script"} {
		if strings.Contains(svg, forbidden) {
			t.Errorf("the policy forbids %s: %s", forbidden, svg)
		}
	}
}

func TestUnknownTimes(t *testing.T) {
	t.Parallel()
	c := aChart(true, Series{"half", "s1", []float64{gap, gap, 1, gap, 1}})
	c.Known = []bool{false, false, true, false, true}
	svg := string(c.SVG())
	for _, want := range []string{
		`<rect class="unknown" x="0" width="2" height="100"/>`, `<rect class="unknown" x="3" width="1" height="100"/>`,
	} {
		if !strings.Contains(svg, want) {
			t.Errorf("no %s in %s", want, svg)
		}
	}
}

func TestBlankCharts(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		lines  bool
		values []float64
		blank  bool
	}{
		{false, []float64{0, 0}, true},
		{false, []float64{gap, 0}, true},
		{false, []float64{0, 1}, false},
		{true, []float64{gap, gap}, true},
		{true, []float64{gap, 0}, false},
	} {
		c := aChart(test.lines, Series{"x", "s1", test.values})
		if c.Blank() != test.blank {
			t.Errorf("lines %v of %v: blank %v", test.lines, test.values, c.Blank())
		}
	}
}

// A table has at most sixty rows: several buckets share one then.
func TestTablesAreShort(t *testing.T) {
	t.Parallel()
	for _, n := range []int{1, 59, 60, 61, 90, 96, 120, 121, 500} {
		values := make([]float64, n)
		sum := 0.0
		for i := range values {
			values[i] = float64(i + 1)
			sum += values[i]
		}
		c := aChart(false, Series{"x", "s1", values})
		rows := c.Rows()
		got := 0.0
		for _, r := range rows {
			var v float64
			if _, err := fmt.Sscan(strings.ReplaceAll(r.Values[0], "\u202f", ""), &v); err != nil {
				t.Fatal(err)
			}
			got += v
		}
		if len(rows) > tableRows || len(rows) < min(n, tableRows/2) || got != sum {
			t.Errorf("%d buckets: %d rows with a sum of %v, expected %v", n, len(rows), got, sum)
		}
		c.Lines = true
		if rows := c.Rows(); rows[0].Values[0] != format.Number(n) {
			t.Errorf("%d buckets: the latest row has %s, expected the largest, %d", n, rows[0].Values[0], n)
		}
		if said := c.Grouping() != ""; said != (n > tableRows) {
			t.Errorf("%d buckets: the table says %q", n, c.Grouping())
		}
	}
}

// Lines are at round values: few of them, and one at or above the largest value.
func TestSteps(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		steps      func(float64) float64
		most, want float64
	}{
		{countStep, 0, 1},
		{countStep, 1, 1},
		{countStep, 3, 1},
		{countStep, 5, 2},
		{countStep, 9, 5},
		{countStep, 40, 10},
		{countStep, 41, 20},
		{countStep, 1234, 500},
		{durationStep, 0, 1e-6},
		{durationStep, .0031, .001},
		{durationStep, .9, .5},
		{durationStep, 7, 2},
		{durationStep, 100, 30},
		{durationStep, 3600, 900},
		{durationStep, 86400, 21600},
	} {
		if got := test.steps(test.most); math.Abs(got-test.want) > test.want*1e-9 {
			t.Errorf("up to %v: steps of %v, expected %v", test.most, got, test.want)
		}
	}
	for most := 1e-7; most < 1e9; most *= 1.07 {
		for name, steps := range map[string]func(float64) float64{"counts": countStep, "durations": durationStep} {
			step := steps(most)
			if n := math.Ceil(most/step - 1e-9); !(step > 0) || n < 1 || n > wantedLines {
				t.Fatalf("%s up to %v: %v lines of %v", name, most, n, step)
			}
		}
	}
}

// Ticks are at round times.
func TestTimeAxis(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 3, 1, 12, 3, 17, 0, time.UTC)
	for _, test := range []struct {
		span        *Span
		ticks       []string
		first, last string
	}{
		{&hourSpan, []string{"11:10", "11:20", "11:30", "11:40", "11:50", "12:00"}, "11:03:30", "12:03:00"},
		{&coarseHour, []string{"11:10", "11:20", "11:30", "11:40", "11:50", "12:00"}, "11:04", "12:03"},
		{&daySpan, []string{"16:00", "20:00", "00:00", "04:00", "08:00", "12:00"}, "Sat 12:15", "Sun 12:00"},
		{&quarterSpan, nil, "Tue 2 Dec", "Sun 1 Mar"},
	} {
		c := &Chart{}
		from := test.span.begin(now)
		c.timeAxis(from, test.span.step, test.span.n)
		var texts []string
		for _, tick := range c.Ticks {
			texts = append(texts, tick.Text)
			if tick.At < 0 || tick.At >= float64(test.span.n) {
				t.Errorf("%s: a tick at %v", test.span.Name, tick.At)
			}
		}
		some := len(texts) > 2 && len(texts) < 8
		if test.ticks == nil && !some || test.ticks != nil && !slices.Equal(texts, test.ticks) {
			t.Errorf("%s: ticks %q, expected %q", test.span.Name, texts, test.ticks)
		}
		if f, l := c.Names[0], c.Names[len(c.Names)-1]; f != test.first || l != test.last {
			t.Errorf("%s: from %q to %q, expected %q to %q", test.span.Name, f, l, test.first, test.last)
		}
	}
}

func TestSpreadOfNothing(t *testing.T) {
	t.Parallel()
	if c := Spread("x", "Took", &inspect.Histogram{}); !c.Blank() || c.All != "none" {
		t.Errorf("%+v", c)
	}
}

func TestSparkline(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		values []float64
		want   string
	}{
		{nil, ""},
		{[]float64{0, 0}, ""},
		{[]float64{0, 2, 1}, `<path d="M0 22L1 2L2 12"/>`},
		{[]float64{4, gap, 4, 0}, `<path d="M0 2M2 2L3 22"/>`},
	} {
		got := string(Sparkline(test.values))
		if !strings.Contains(got, test.want) || (got == "") != (test.want == "") {
			t.Errorf("%v: %s, expected %s", test.values, got, test.want)
		}
	}
}
