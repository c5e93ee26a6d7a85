package main

import (
	"fmt"
	"html"
	"math"
	"strings"
)

// barGroup is a label with a bar for each peer.
type barGroup struct {
	name string
	bars []bar
}

type bar struct {
	peer  string
	class int // chooses the colour
	value spread
}

// point is a value with its range at x.
type point struct {
	x float64
	y spread
}

// Sizes, in px.
const (
	svgWidth  = 760
	svgLeft   = 190 // where bars begin
	svgRight  = 110 // room for a bar's value
	barHeight = 16
	barGap    = 3
	groupGap  = 12
)

// svgStyle is readable in light and dark mode: the colours of the text follow the reader's preference, and the bars are
// dark enough for the one and light enough for the other.
const svgStyle = `<style>
text{font:12px system-ui,sans-serif;fill:#24292f}.t{font-size:14px;font-weight:600}.s{fill:#57606a}
.l{stroke:#57606a;stroke-width:1;fill:none}.g{stroke:#8c959f;stroke-opacity:.35}
.c0{fill:#2f81f7}.c1{fill:#d4762c}.c2{fill:#8b949e}.c3{fill:#3a9d5d}` +
	`.c4{fill:#a371d9}.c5{fill:#c9558f}.c6{fill:#b59a1e}.c7{fill:#2aa1a8}
@media(prefers-color-scheme:dark){text{fill:#e6edf3}.s{fill:#9da7b3}.l{stroke:#9da7b3}}
</style>
`

// svgColours is the number of colours of svgStyle.
const svgColours = 8

func svgHead(height int, title string) string {
	escaped := html.EscapeString(title)
	return fmt.Sprintf(`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" width="%d" height="%d"`+
		` role="img" aria-label="%s">
<title>%s</title>
%s<text class="t" x="8" y="20">%s</text>
`, svgWidth, height, svgWidth, height, escaped, escaped, svgStyle, escaped)
}

// drawBars draws groups of horizontal bars for medians, and a thin line over each range.
func drawBars(title string, log bool, groups []barGroup) string {
	low, high := math.Inf(1), 0.0
	height := 34
	for _, g := range groups {
		height += len(g.bars)*(barHeight+barGap) + groupGap
		for _, b := range g.bars {
			low, high = min(low, b.value.Low), max(high, b.value.High)
		}
	}
	length := barScale(log, low, high)
	var s strings.Builder
	s.WriteString(svgHead(height, title))
	y := 34
	for _, g := range groups {
		fmt.Fprintf(&s, `<text x="8" y="%d">%s</text>`+"\n", y+barHeight-4, html.EscapeString(g.name))
		for _, b := range g.bars {
			w := length(b.value.Middle)
			middle := y + barHeight/2
			fmt.Fprintf(&s, `<rect class="c%d" x="%d" y="%d" width="%.1f" height="%d" rx="2"/>`, b.class%svgColours,
				svgLeft, y, max(1, w), barHeight)
			fmt.Fprintf(&s, `<path class="l" d="M%.1f %dH%.1f"/>`, svgLeft+length(b.value.Low), middle,
				svgLeft+length(b.value.High))
			fmt.Fprintf(&s, `<text x="%.1f" y="%d">%s <tspan class="s">%s</tspan></text>`+"\n",
				svgLeft+max(w, length(b.value.High))+6, y+barHeight-4, number(b.value.Middle),
				html.EscapeString(b.peer))
			y += barHeight + barGap
		}
		y += groupGap
	}
	s.WriteString("</svg>\n")
	return s.String()
}

// barScale returns the length of a bar in px; logarithmic ones begin half a decade below the smallest value.
func barScale(log bool, low, high float64) func(float64) float64 {
	const room = svgWidth - svgLeft - svgRight
	if high <= 0 {
		return func(float64) float64 { return 0 }
	}
	if !log || low <= 0 {
		return func(v float64) float64 { return v / high * room }
	}
	begin := math.Log10(low) - 0.5
	return func(v float64) float64 { return max(0, (math.Log10(v)-begin)/(math.Log10(high)-begin)) * room }
}

// drawLine draws one line over a logarithmic x axis, with the range at each point. The y axis begins at 0.
func drawLine(title, xName string, points []point) string {
	const height, bottom, top = 260, 215, 40
	high, first, last := 0.0, math.Inf(1), 0.0
	for _, p := range points {
		high, first, last = max(high, p.y.High), min(first, p.x), max(last, p.x)
	}
	if high <= 0 || first <= 0 || first == last {
		return svgHead(40, title+": nothing to draw") + "</svg>\n"
	}
	x := func(v float64) float64 {
		return 60 + math.Log10(v/first)/math.Log10(last/first)*(svgWidth-120)
	}
	y := func(v float64) float64 { return bottom - v/high*(bottom-top) }
	var s, path strings.Builder
	s.WriteString(svgHead(height, title))
	fmt.Fprintf(&s, `<path class="l" d="M40 %dH%d"/>`+"\n", bottom, svgWidth-20)
	for i, p := range points {
		command := "L"
		if i == 0 {
			command = "M"
		}
		fmt.Fprintf(&path, "%s%.1f %.1f", command, x(p.x), y(p.y.Middle))
		fmt.Fprintf(&s, `<path class="l" d="M%.1f %.1fV%.1f"/>`, x(p.x), y(p.y.Low), y(p.y.High))
		fmt.Fprintf(&s, `<circle class="c0" cx="%.1f" cy="%.1f" r="4"/>`, x(p.x), y(p.y.Middle))
		fmt.Fprintf(&s, `<text text-anchor="middle" x="%.1f" y="%.1f">%s</text>`, x(p.x), y(p.y.High)-8,
			number(p.y.Middle))
		fmt.Fprintf(&s, `<text class="s" text-anchor="middle" x="%.1f" y="%d">%s</text>`+"\n", x(p.x), bottom+18,
			number(p.x))
	}
	fmt.Fprintf(&s, `<path class="l" d="%s"/><text class="s" x="8" y="%d">%s</text>`+"\n</svg>\n", path.String(),
		height-8, html.EscapeString(xName))
	return s.String()
}
