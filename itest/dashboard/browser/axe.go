package browser

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
)

// axeSource is the script of axe-core, which make setup has installed. DELAYED_AXE names another one.
var axeSource = sync.OnceValues(func() (string, error) {
	path := os.Getenv("DELAYED_AXE")
	if path == "" {
		root, err := repository()
		if err != nil {
			return "", err
		}
		path = filepath.Join(root, ".cache/npm/node_modules/axe-core/axe.min.js")
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return "", fmt.Errorf("axe-core is not installed: run make setup: %w", err)
	}
	return string(text), nil
})

// repository returns the root of the repository above the test.
func repository() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.work")); err == nil {
			return dir, nil
		}
		above := filepath.Dir(dir)
		if above == dir {
			return "", errors.New("expected the root of the repository above this test, found no go.work")
		}
		dir = above
	}
}

// violation is a rule of accessibility that a page breaks.
type violation struct {
	ID, Help string
	Nodes    []struct {
		HTML           string
		FailureSummary string
	}
}

// Axe returns the rules of accessibility that the page breaks: those of WCAG 2.2 up to AA, and axe-core's best
// practices. Each line names a rule, and the first elements that break it. If rules are given, it looks for these only.
func (p *Page) Axe(rules ...string) (broken []string) {
	p.t.Helper()
	source, err := axeSource()
	if err != nil {
		p.t.Fatalf("browser: %v", err)
	}
	var there bool // looked for before on this page
	if p.Eval("!!window.axe", &there); !there {
		p.Eval(source+"\n;0", nil)
	}
	var violations []violation
	options := `{resultTypes: ["violations"]}`
	if len(rules) > 0 {
		options = fmt.Sprintf(`{resultTypes: ["violations"], runOnly: ["%s"]}`, strings.Join(rules, `", "`))
	}
	p.Eval(`axe.run(document, `+options+`).then((r) => r.violations.map((v) => ({
		ID: v.id, Help: v.help,
		Nodes: v.nodes.map((n) => ({HTML: n.html.slice(0, 300), FailureSummary: n.failureSummary})),
	})))`, &violations)
	for _, v := range violations {
		var line strings.Builder
		fmt.Fprintf(&line, "%s: %s (%d elements)", v.ID, v.Help, len(v.Nodes))
		for _, n := range v.Nodes[:min(3, len(v.Nodes))] {
			fmt.Fprintf(&line, "\n\t%s\n\t\t%s", n.HTML, strings.ReplaceAll(n.FailureSummary, "\n", "\n\t\t"))
		}
		broken = append(broken, line.String())
	}
	return broken
}

// Wide returns how many pixels the page is wider than its window, and the innermost elements that stick out on the
// right without being within something that scrolls by itself.
func (p *Page) Wide() (pixels int, elements []string) {
	p.t.Helper()
	var found struct {
		Pixels   int
		Elements []string
	}
	p.Eval(`(() => {
		const root = document.documentElement, width = root.clientWidth;
		const pixels = Math.max(root.scrollWidth, document.body.scrollWidth) - width;
		if (pixels <= 0) return {Pixels: 0, Elements: []};
		const scrolls = (e) => { for (e = e.parentElement; e && e !== document.body; e = e.parentElement)
			if (getComputedStyle(e).overflowX !== "visible") return true; return false; };
		const wide = (e) => { const box = e.getBoundingClientRect();
			return Math.max(box.right, box.left + e.scrollWidth) > width + 0.5 &&
				getComputedStyle(e).overflowX === "visible" && !scrolls(e); };
		const out = [...document.body.querySelectorAll("*")].filter((e) => wide(e) && ![...e.children].some(wide));
		return {Pixels: pixels, Elements: out.slice(0, 5).map((e) => e.outerHTML.slice(0, 200))};
	})()`, &found)
	return found.Pixels, found.Elements
}
