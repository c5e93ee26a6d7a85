package term

import "strings"

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
