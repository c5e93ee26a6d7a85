package term

import (
	"fmt"
	"io"
	"strings"
)

// Progress is a bar on a terminal. Its zero value, and one without Out, shows nothing.
type Progress struct {
	Out   io.Writer // nil: no bar
	Total int       // 0: unknown

	shown bool
}

// Show draws the bar in place of the one before. note follows it; it must be printable.
func (p *Progress) Show(n int, note string) {
	if p.Out == nil {
		return
	}
	p.shown = true
	if p.Total == 0 {
		fmt.Fprintf(p.Out, "\r\x1b[K%s  %s", Number(n), note)
		return
	}
	n = min(n, p.Total)
	fmt.Fprintf(p.Out, "\r\x1b[K%s %s/%s  %s", Bar(int64(n), int64(p.Total)), Number(n), Number(p.Total), note)
}

// Bar draws how much of a positive total is done.
func Bar(done, total int64) string {
	const wide = 20
	full := int(wide * max(min(float64(done)/float64(total), 1), 0))
	return "[" + strings.Repeat("#", full) + strings.Repeat(".", wide-full) + "]"
}

// Clear removes the bar.
func (p *Progress) Clear() {
	if p.shown {
		fmt.Fprint(p.Out, "\r\x1b[K")
		p.shown = false
	}
}

// Heights are the bars of a graph, from the lowest to the highest.
const Heights = "▁▂▃▄▅▆▇█"

// Spark draws values that are not negative as a line of at most so many bars, each of them the sum of neighbours if
// there are more values. The largest bar fills the line; a space is 0, so that any other value can be seen. heights are
// Heights, or others where these cannot be shown.
func Spark[N int | uint64](values []N, columns int, heights string) string {
	bars := []rune(heights)
	n := min(len(values), max(columns, 1))
	sums := make([]N, n)
	largest := N(0)
	for i, v := range values {
		at := i * n / len(values)
		sums[at] += v
		largest = max(largest, sums[at])
	}
	var b strings.Builder
	for _, v := range sums {
		if v == 0 {
			b.WriteByte(' ')
			continue
		}
		b.WriteRune(bars[(v*N(len(bars))+largest-1)/largest-1])
	}
	return b.String()
}
