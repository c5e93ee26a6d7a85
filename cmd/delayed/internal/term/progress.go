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

const barWidth = 20

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
	full := n * barWidth / p.Total
	fmt.Fprintf(p.Out, "\r\x1b[K[%s%s] %s/%s  %s", strings.Repeat("#", full), strings.Repeat(".", barWidth-full),
		Number(n), Number(p.Total), note)
}

// Clear removes the bar.
func (p *Progress) Clear() {
	if p.shown {
		fmt.Fprint(p.Out, "\r\x1b[K")
		p.shown = false
	}
}
