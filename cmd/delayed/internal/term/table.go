package term

import "strings"

// Column is a column of a table.
type Column struct {
	Name  string
	Right bool // align to the right, as numbers are
	Flex  bool // may be clipped where the terminal is narrow
	// Optional leaves the column out when all its cells are empty or "0".
	Optional bool
	// Drop, if positive, lets the column be left out where the terminal is narrow, that with the largest Drop first.
	Drop int
}

// Table is a table whose columns are as wide as what they hold.
type Table struct {
	columns []Column
	rows    [][]Cell
}

// NewTable returns an empty table.
func NewTable(columns ...Column) *Table { return &Table{columns: columns} }

// Row adds a row: a cell for each column.
func (t *Table) Row(cells ...Cell) { t.rows = append(t.rows, cells) }

const (
	gap      = 2  // columns of the terminal between two of a table
	fairCell = 24 // what a flexible column keeps while others can be left out
	lastCell = 8  // what it keeps in any case
	mostCell = 120
)

// Table writes a table.
func (p *Page) Table(t *Table) {
	texts := make([][]string, len(t.rows))
	for r, row := range t.rows {
		texts[r] = make([]string, len(t.columns))
		for c := range t.columns {
			texts[r][c] = Clip(row[c].Text, mostCell)
		}
	}
	shown := t.filled(texts)
	sizes := t.sizes(texts)
	for p.Width > 0 && total(shown, sizes) > p.Width {
		if t.shrink(shown, sizes, p.Width, fairCell) {
			break
		}
		next, ok := t.without(shown)
		if !ok {
			t.shrink(shown, sizes, p.Width, lastCell)
			break
		}
		shown = next
		sizes = t.sizes(texts)
	}
	var line strings.Builder
	for r := -1; r < len(t.rows); r++ {
		line.Reset()
		for _, c := range shown {
			text, style := t.columns[c].Name, Dim
			if r >= 0 {
				text, style = Clip(texts[r][c], sizes[c]), t.rows[r][c].Style
			}
			fill := strings.Repeat(" ", max(sizes[c]-Width(text), 0))
			if text = p.paint(text, style); t.columns[c].Right {
				text, fill = fill+text, ""
			}
			line.WriteString(text + fill + strings.Repeat(" ", gap))
		}
		p.b.WriteString(strings.TrimRight(line.String(), " ") + "\n")
	}
}

// filled returns the columns that hold anything.
func (t *Table) filled(texts [][]string) (shown []int) {
	for c, column := range t.columns {
		empty := column.Optional
		for r := range texts {
			empty = empty && (texts[r][c] == "" || texts[r][c] == "0")
		}
		if !empty {
			shown = append(shown, c)
		}
	}
	return shown
}

// sizes returns how wide each column would like to be.
func (t *Table) sizes(texts [][]string) []int {
	sizes := make([]int, len(t.columns))
	for c, column := range t.columns {
		sizes[c] = Width(column.Name)
		for r := range texts {
			sizes[c] = max(sizes[c], Width(texts[r][c]))
		}
	}
	return sizes
}

func total(shown, sizes []int) int {
	sum := gap * (len(shown) - 1)
	for _, c := range shown {
		sum += sizes[c]
	}
	return sum
}

// shrink narrows the flexible columns, the widest first, until the table fits or they have the least width; it reports
// whether it fits.
func (t *Table) shrink(shown, sizes []int, width, least int) bool {
	for total(shown, sizes) > width {
		widest := -1
		for _, c := range shown {
			if t.columns[c].Flex && sizes[c] > least && (widest < 0 || sizes[c] > sizes[widest]) {
				widest = c
			}
		}
		if widest < 0 {
			return false
		}
		sizes[widest]--
	}
	return true
}

// without leaves out the column that can best be spared.
func (t *Table) without(shown []int) (rest []int, ok bool) {
	spared := -1
	for i, c := range shown {
		if t.columns[c].Drop > 0 && (spared < 0 || t.columns[c].Drop > t.columns[shown[spared]].Drop) {
			spared = i
		}
	}
	if spared < 0 {
		return shown, false
	}
	return append(append(rest, shown[:spared]...), shown[spared+1:]...), true
}
