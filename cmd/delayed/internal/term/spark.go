package term

import "strings"

// bars are the heights of a graph, from the lowest to the highest.
var bars = []rune("▁▂▃▄▅▆▇█")

// Spark draws values that are not negative as a line of at most so many bars, each of them the sum of neighbours if
// there are more values. The largest bar fills the line; a space is 0, so that any other value can be seen.
func Spark(values []int, columns int) string {
	n := min(len(values), max(columns, 1))
	sums := make([]int, n)
	largest := 0
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
		b.WriteRune(bars[(v*len(bars)+largest-1)/largest-1])
	}
	return b.String()
}
