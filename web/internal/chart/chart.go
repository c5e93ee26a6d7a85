// Package chart draws what has run over time, and keeps what it has read for that.
package chart

import (
	"fmt"
	"html"
	"html/template"
	"math"
	"strconv"
	"strings"
)

// Chart is a picture of some values, with the same values as a table. It has no styles of its own: app.css gives it
// colours, and its width is that of the page.
type Chart struct {
	ID     string // of its element
	Title  string
	Note   string // beside the title, such as "per minute"
	Series []Series
	Lines  bool // else it has columns, one series upon the other

	Names  []string // of the buckets, the same for all series: a time, or a range
	Column string   // what Names are, in the table
	Ticks  []Tick   // below
	Value  func(float64) string
	Axis   func(float64) string       // likewise, at the lines; nil: as Value, or short for counts
	Steps  func(most float64) float64 // the distance of lines that help to read it; nil: of counts
	Known  []bool                     // of each bucket; nil: all are
	Empty  string                     // shown where there are no values
	All    string                     // a sentence for whoever does not see the picture
}

// Series are values of one kind. NaN is a gap.
type Series struct {
	Name, Class string
	Values      []float64
}

// Tick is a mark below a chart, at a place counted in buckets.
type Tick struct {
	At   float64
	Text string
}

// gap is no value.
var gap = math.NaN()

// The picture: plotHeight pixels, of which some are above the highest line and some below for the ticks. The plot has
// coordinates of its own: one for each bucket from left to right, and 100 from top to bottom.
const (
	chartHeight = 172
	plotTop     = 8
	plotHeight  = 140
)

// Blank reports whether the chart has no values.
func (c *Chart) Blank() bool {
	for _, s := range c.Series {
		for _, v := range s.Values {
			if v > 0 || c.Lines && v == 0 {
				return false
			}
		}
	}
	return true
}

// most returns the largest value, or sum of a column.
func (c *Chart) most() (most float64) {
	for i := range c.Names {
		sum := 0.0
		for _, s := range c.Series {
			if v := s.Values[i]; !math.IsNaN(v) {
				sum += v
				most = max(most, v)
			}
		}
		if !c.Lines {
			most = max(most, sum)
		}
	}
	return most
}

// SVG draws the chart.
func (c *Chart) SVG() template.HTML {
	steps, axis := c.Steps, c.Axis
	if steps == nil {
		steps, axis = countStep, shortCount
	}
	if axis == nil {
		axis = c.Value
	}
	most := c.most()
	step := steps(most)
	top := math.Ceil(most/step-1e-9) * step
	if top <= 0 {
		top = step
	}
	var b strings.Builder
	fmt.Fprintf(&b, `<div class="picture"><svg class="axis" height="%d" aria-hidden="true">`, chartHeight)
	for v := 0.0; v <= top+step/2; v += step {
		fmt.Fprintf(&b, `<text x="100%%" y="%s">%s</text>`, coord(plotTop+plotHeight*(1-v/top)+4),
			html.EscapeString(axis(v)))
	}
	fmt.Fprintf(&b, `</svg><svg class="view" height="%d" role="img" aria-label="%s">`, chartHeight,
		html.EscapeString(c.Title+": "+c.All))
	for v := 0.0; v <= top+step/2; v += step {
		y := plotTop + plotHeight*(1-v/top)
		fmt.Fprintf(&b, `<line class="grid-line" x1="0" x2="100%%" y1="%[1]s" y2="%[1]s"/>`, coord(math.Round(y)+.5))
	}
	fmt.Fprintf(&b, `<svg class="plot" y="%d" width="100%%" height="%d" viewBox="0 0 %d 100" `+
		`preserveAspectRatio="none">`, plotTop, plotHeight, len(c.Names))
	c.unknown(&b)
	if c.Lines {
		c.lines(&b, top)
	} else {
		c.columns(&b, top)
	}
	c.hits(&b)
	b.WriteString("</svg>")
	for _, t := range c.Ticks {
		if share := 100 * t.At / float64(len(c.Names)); share > 3 && share < 97 { // else it would stand out
			fmt.Fprintf(&b, `<text x="%s%%" y="%d">%s</text>`, coord(share), chartHeight-6, html.EscapeString(t.Text))
		}
	}
	b.WriteString("</svg></div>")
	return template.HTML(b.String()) //nolint:gosec // all texts are escaped
}

// unknown marks the buckets of which nothing is known.
func (c *Chart) unknown(b *strings.Builder) {
	for i := 0; i < len(c.Known); i++ {
		first := i
		for i < len(c.Known) && !c.Known[i] {
			i++
		}
		if i > first {
			fmt.Fprintf(b, `<rect class="unknown" x="%d" width="%d" height="100"/>`, first, i-first)
		}
	}
}

// lines draws each series as a line that ends at gaps, and points between gaps as dots. The first has its area filled.
func (c *Chart) lines(b *strings.Builder, top float64) {
	for n, s := range c.Series {
		var line, dots, area strings.Builder
		for i := 0; i < len(s.Values); i++ {
			first := i
			for ; i < len(s.Values) && !math.IsNaN(s.Values[i]); i++ {
				x, y := coord(float64(i)+.5), coord(100-100*s.Values[i]/top)
				if i == first {
					line.WriteString("M" + x + " " + y)
					area.WriteString("M" + x + " 100L" + x + " " + y)
					continue
				}
				line.WriteString("L" + x + " " + y)
				area.WriteString("L" + x + " " + y)
			}
			switch {
			case i == first+1: // a point
				line.WriteString("h.01")
				fmt.Fprintf(&dots, "M%s %sh.01", coord(float64(first)+.5), coord(100-100*s.Values[first]/top))
				area.WriteString("V100Z")
			case i > first:
				area.WriteString("V100Z")
			}
		}
		if line.Len() == 0 {
			continue
		}
		if n == 0 {
			fmt.Fprintf(b, `<path class="area %s" d="%s"/>`, s.Class, area.String())
		}
		fmt.Fprintf(b, `<path class="line %s" d="%s"/>`, s.Class, line.String())
		if dots.Len() > 0 {
			fmt.Fprintf(b, `<path class="line dot %s" d="%s"/>`, s.Class, dots.String())
		}
	}
}

// columns draws each series on top of those before it.
func (c *Chart) columns(b *strings.Builder, top float64) {
	below := make([]float64, len(c.Names))
	for _, s := range c.Series {
		var path strings.Builder
		for i, v := range s.Values {
			if !(v > 0) { // nor a gap
				continue
			}
			high := max(100*v/top, .8) // a single failure among thousands is seen
			y := 100 - 100*below[i]/top - high
			fmt.Fprintf(&path, "M%s %sh.8v%sh-.8z", coord(float64(i)+.1), coord(y), coord(high))
			below[i] += v
		}
		if path.Len() > 0 {
			fmt.Fprintf(b, `<path class="column %s" d="%s"/>`, s.Class, path.String())
		}
	}
}

// hits has a place for each bucket that shows its values when it is pointed at.
func (c *Chart) hits(b *strings.Builder) {
	for i := range c.Names {
		text := c.values(i)
		if text == "" {
			continue
		}
		fmt.Fprintf(b, `<rect class="hit" x="%d" width="1" height="100"><title>%s: %s</title></rect>`, i,
			html.EscapeString(c.Names[i]), html.EscapeString(text))
	}
}

// values returns the values of a bucket as a text; "" if it has none.
func (c *Chart) values(i int) string {
	var parts []string
	something := c.Lines
	for _, s := range c.Series {
		if v := s.Values[i]; !math.IsNaN(v) {
			parts = append(parts, s.Name+" "+c.Value(v))
			something = something || v > 0
		}
	}
	if !something {
		return ""
	}
	return strings.Join(parts, ", ")
}

// tableRows bounds the rows of a chart's table.
const tableRows = 60

// Row is a row of a chart's table.
type Row struct {
	Name   string
	Values []string
}

// group returns how many buckets a row of the table has.
func (c *Chart) group() int { return max((len(c.Names)+tableRows-1)/tableRows, 1) }

// Grouping describes what the values of the table are, if a row has several buckets.
func (c *Chart) Grouping() string {
	switch n := c.group(); {
	case n == 1:
		return ""
	case c.Lines:
		return fmt.Sprintf(", the largest of each %d", n)
	default:
		return fmt.Sprintf(", sums of each %d", n)
	}
}

// Rows returns the values as a table, the latest first, without rows that have none.
func (c *Chart) Rows() (rows []Row) {
	n := c.group()
	for at := (len(c.Names) - 1) / n * n; at >= 0; at -= n {
		row := Row{Name: c.Names[at]}
		something := false
		for _, s := range c.Series {
			sum := gap
			for _, v := range s.Values[at:min(at+n, len(s.Values))] {
				switch {
				case math.IsNaN(v):
				case math.IsNaN(sum):
					sum = v
				case c.Lines:
					sum = max(sum, v)
				default:
					sum += v
				}
			}
			if math.IsNaN(sum) {
				row.Values = append(row.Values, "–")
				continue
			}
			something = something || c.Lines || sum > 0
			row.Values = append(row.Values, c.Value(sum))
		}
		if something {
			rows = append(rows, row)
		}
	}
	return rows
}

// Sparkline draws values as one small line.
func Sparkline(values []float64) template.HTML {
	most := 0.0
	for _, v := range values {
		if v > most { // not with max, which a gap would win
			most = v
		}
	}
	if most == 0 {
		return ""
	}
	var d strings.Builder
	pen := "M"
	for i, v := range values {
		if math.IsNaN(v) {
			pen = "M"
			continue
		}
		d.WriteString(pen + strconv.Itoa(i) + " " + strconv.Itoa(int(math.Round(22-20*v/most))))
		pen = "L"
	}
	return template.HTML(fmt.Sprintf( //nolint:gosec // there are only numbers in it
		`<svg class="spark" viewBox="0 0 %d 24" preserveAspectRatio="none" aria-hidden="true"><path d="%s"/></svg>`,
		max(len(values)-1, 1), d.String()))
}

// coord writes a coordinate with at most one digit behind the point.
func coord(f float64) string {
	return strings.TrimSuffix(strconv.FormatFloat(f, 'f', 1, 64), ".0")
}
