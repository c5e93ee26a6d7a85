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

// Num is a column of numbers.
func Num(name string) Column { return Column{Name: name, Right: true} }

// Spare is Num for a column that can be left out where the terminal is narrow; see Column.Drop.
func Spare(name string, drop int) Column { return Column{Name: name, Right: true, Drop: drop} }

// Rare is Spare for a column that is also left out when all its numbers are 0.
func Rare(name string, drop int) Column {
	return Column{Name: name, Right: true, Optional: true, Drop: drop}
}

// Amount is a number; 0 is dimmed.
func Amount[N int | int64 | uint64](n N, style ...Style) Cell {
	if n == 0 {
		return C("0", Dim)
	}
	return C(Number(n), style...)
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

// Gap is how many columns of the terminal are between two of a table.
const Gap = 2

const (
	fairCell = 24 // what a flexible column keeps while others can be left out
	lastCell = 8  // what it keeps in any case
	mostCell = 120
)

// Fitted is a table as it is written where a number of columns of the terminal are free.
type Fitted struct {
	Shown []int // columns that are written, in their order
	Sizes []int // of each column of the table, in columns of the terminal

	t     *Table
	texts [][]string
}

// Fit finds out which columns of the table fit a width, and how wide they are. 0 is no bound.
func (t *Table) Fit(width int) *Fitted {
	texts := make([][]string, len(t.rows))
	for r, row := range t.rows {
		texts[r] = make([]string, len(t.columns))
		for c := range t.columns {
			texts[r][c] = Clip(row[c].Text, mostCell)
		}
	}
	shown := t.filled(texts)
	sizes := t.sizes(texts)
	for width > 0 && total(shown, sizes) > width {
		if t.shrink(shown, sizes, width, fairCell) {
			break
		}
		next, ok := t.without(shown)
		if !ok {
			t.shrink(shown, sizes, width, lastCell)
			break
		}
		shown = next
		sizes = t.sizes(texts)
	}
	return &Fitted{Shown: shown, Sizes: sizes, t: t, texts: texts}
}

// Head returns the names of the columns as cells that fill the columns' sizes.
func (f *Fitted) Head() []Cell {
	cells := make([]Cell, len(f.Shown))
	for i, c := range f.Shown {
		cells[i] = f.cell(c, f.t.columns[c].Name, Dim)
	}
	return cells
}

// Row returns a row of the table as cells that fill the columns' sizes.
func (f *Fitted) Row(r int) []Cell {
	cells := make([]Cell, len(f.Shown))
	for i, c := range f.Shown {
		cells[i] = f.cell(c, Clip(f.texts[r][c], f.Sizes[c]), f.t.rows[r][c].Style)
	}
	return cells
}

// cell fills up a printable text to the size of a column.
func (f *Fitted) cell(c int, text string, style Style) Cell {
	fill := strings.Repeat(" ", max(f.Sizes[c]-Width(text), 0))
	if f.t.columns[c].Right {
		return Cell{Text: fill + text, Style: style}
	}
	return Cell{Text: text + fill, Style: style}
}

// Table writes a table.
func (p *Page) Table(t *Table) {
	f := t.Fit(p.Width)
	var line strings.Builder
	for r := -1; r < len(t.rows); r++ {
		cells := f.Head()
		if r >= 0 {
			cells = f.Row(r)
		}
		line.Reset()
		for _, c := range cells {
			// The spaces around a text have no style, so that those at the end of a line can be left out.
			text := strings.Trim(c.Text, " ")
			before, after, _ := strings.Cut(c.Text, text)
			line.WriteString(before + p.paint(text, c.Style) + after + strings.Repeat(" ", Gap))
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
	sum := Gap * (len(shown) - 1)
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
