package page

import (
	"fmt"
	"strings"
	"testing"

	"github.com/godelayed/delayed/web/internal/chart"
)

// Texts of series and buckets cannot leave their place. A chart without values says so.
func TestChartTemplate(t *testing.T) {
	t.Parallel()
	c := &chart.Chart{
		ID: "x", Title: `"><script>`, All: "<script>", Empty: "Nothing has run.", Names: []string{"</title><script>"},
		Ticks: []chart.Tick{{At: .5, Text: "<script>"}}, Value: func(f float64) string { return fmt.Sprint(f) },
	}
	for _, value := range []float64{0, 1} {
		c.Series = []chart.Series{{Name: `<b>"x`, Class: "s1", Values: []float64{value}}}
		html, err := MainPart("chart", c)
		text := string(html)
		if err != nil || strings.Contains(text, "<script") || strings.Contains(text, "<b>") {
			t.Errorf("%s, %v", text, err)
		}
		if blank := value == 0; strings.Contains(text, c.Empty) != blank || strings.Contains(text, "<svg") == blank {
			t.Errorf("value %v: %s", value, text)
		}
	}
}
