package term

import (
	"math"
	"strings"
	"testing"
	"time"
	"unicode/utf8"
)

func TestClip(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		in    string
		width int
		want  string
	}{
		{"mail", 4, "mail"},
		{"mails", 4, "mai…"},
		{"\x1b[31m", 20, `\x1b[31m`},
		{"a\nb\tc", 20, `a\nb\tc`},
		{"\u202eabc", 20, `\u202eabc`},
		{"\xff", 20, `\xff`},
		{"日本語", 6, "日本語"},
		{"日本語", 5, "日本…"},
		{"", 0, ""},
		{"x", 0, "…"},
		{strings.Repeat("\u0301", 1<<20), 10, ""},
	} {
		got := Clip(c.in, c.width)
		if c.want == "" && len(c.in) > 0 { // marks that take no column are bounded all the same
			if len(got) > 1000 || !utf8.ValidString(got) {
				t.Errorf("%d bytes of %d", len(got), len(c.in))
			}
			continue
		}
		if got != c.want {
			t.Errorf("Clip(%q, %d) is %q, expected %q", c.in, c.width, got, c.want)
		}
	}
}

func TestTableFits(t *testing.T) {
	t.Parallel()
	table := NewTable(Column{Name: "NAME", Flex: true}, Column{Name: "N", Right: true}, Column{Name: "FIRST", Drop: 1},
		Column{Name: "SECOND", Drop: 2}, Column{Name: "EMPTY", Optional: true})
	table.Row(C("a rather long name of something"), C("12"), C("spare"), C("most spare"), C("0"))
	table.Row(C("日本語"), C("7"), C("x"), C("y"), C(""))
	for width, want := range map[int][2]bool{ // whether FIRST and SECOND are there
		100: {true, true}, 54: {true, true}, 46: {true, false}, 36: {true, false}, 20: {false, false},
	} {
		p := &Page{Width: width}
		p.Table(table)
		out := p.String()
		if strings.Contains(out, "EMPTY") {
			t.Errorf("at %d columns an empty column is shown", width)
		}
		if got := [2]bool{strings.Contains(out, "FIRST"), strings.Contains(out, "SECOND")}; got != want {
			t.Errorf("at %d columns FIRST and SECOND are shown: %v, expected %v:\n%s", width, got, want, out)
		}
		for line := range strings.SplitSeq(strings.TrimSuffix(out, "\n"), "\n") {
			if Width(line) > width {
				t.Errorf("at %d columns a line has %d: %s", width, Width(line), line)
			}
		}
		if strings.Count(out, "\n") != 3 {
			t.Errorf("at %d columns there are other than three lines:\n%s", width, out)
		}
	}
}

func TestWords(t *testing.T) {
	t.Parallel()
	for d, want := range map[time.Duration]string{
		0: "0ms", 999 * time.Millisecond: "999ms", 1500 * time.Millisecond: "1.5s", 59 * time.Second: "59s",
		61 * time.Second: "1m01s", 90 * time.Minute: "1h30m", 50 * time.Hour: "2d2h", -time.Second: "-1s",
		math.MinInt64: "-106751d23h",
	} {
		if got := Duration(d); got != want {
			t.Errorf("%v is %q, expected %q", d, got, want)
		}
	}
	if got := Ago(time.Date(3000, 1, 1, 0, 0, 0, 0, time.UTC), time.Unix(0, 0)); got != "in 106751d23h" {
		t.Errorf("a thousand years are %q", got)
	}
	for n, want := range map[int]string{0: "0", 999: "999", 1000: "1,000", 1234567: "1,234,567", -1000: "-1,000"} {
		if got := Number(n); got != want {
			t.Errorf("%d is %q, expected %q", n, got, want)
		}
	}
	for n, want := range map[int64]string{
		7: "7 B", 1024: "1 KiB", 1536: "1.5 KiB", 20 << 20: "20 MiB", 3 << 40: "3 TiB",
	} {
		if got := Bytes(n); got != want {
			t.Errorf("%d is %q, expected %q", n, got, want)
		}
	}
}

func TestConfirm(t *testing.T) {
	t.Parallel()
	for answer, want := range map[string]bool{
		"y\n": true, "YES\n": true, "n\n": false, "\n": false, "": false, "yeah\n": false,
	} {
		var out strings.Builder
		if got := Confirm(t.Context(), strings.NewReader(answer), &out, "Sure\x1b?"); got != want {
			t.Errorf("%q means %v, expected %v", answer, got, want)
		}
		if out.String() != `Sure\x1b? [y/N] ` {
			t.Errorf("the question is %q", out.String())
		}
	}
}

func TestProgress(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	bar := Progress{Out: &out, Total: 2000}
	bar.Show(500, "done 7")
	bar.Clear()
	bar.Clear()
	if got, want := out.String(), "\r\x1b[K[#####...............] 500/2,000  done 7\r\x1b[K"; got != want {
		t.Errorf("the bar is %q, expected %q", got, want)
	}
	(&Progress{}).Show(1, "nobody sees it")
}

func TestSpark(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		values  []int
		columns int
		want    string
	}{
		{nil, 10, ""},
		{[]int{0, 0}, 10, "  "},
		{[]int{1, 2, 3, 4, 5, 6, 7, 8}, 8, "▁▂▃▄▅▆▇█"},
		{[]int{0, 1, 1000}, 10, " ▁█"},
		{[]int{1, 1, 0, 0, 2, 0}, 3, "█ █"},
		{[]int{5}, 0, "█"},
	} {
		if got := Spark(c.values, c.columns, Heights); got != c.want {
			t.Errorf("%v in %d columns: %q, expected %q", c.values, c.columns, got, c.want)
		}
	}
}
