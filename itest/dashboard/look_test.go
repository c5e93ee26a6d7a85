//go:build unix

package dashboard_test

import (
	"fmt"
	"testing"

	"github.com/godelayed/delayed/itest/dashboard/browser"
)

// TestPagesInBrowser opens a page of each kind on a wide screen, in light and dark colours, and on a narrow one: the
// browser has nothing to complain of, everybody can use the page as far as axe-core can tell, and nothing but wide
// tables scrolls to the side.
func TestPagesInBrowser(t *testing.T) {
	t.Parallel()
	s := newSite(t, asAdmin)
	s.fill()
	pages := s.pages()
	for _, width := range []int64{1400, 390} {
		t.Run(fmt.Sprint(width), func(t *testing.T) {
			t.Parallel()
			p := browser.Open(t)
			p.Size(width, 900)
			var rules []string // all
			if width < 1000 {
				rules = []string{"scrollable-region-focusable", "target-size"} // the others do not depend on the width
			}
			for _, a := range pages {
				t.Run(a.address, func(t *testing.T) {
					p.Dark(false)
					p.Go(s.url + a.address)
					p.Until("the page is live", live)
					for _, broken := range p.Axe(rules...) {
						t.Error(broken)
					}
					if pixels, elements := p.Wide(); pixels > 0 {
						t.Errorf("the page is %d pixels wider than its window: %q", pixels, elements)
					}
					if rules != nil {
						return
					}
					p.Dark(true)
					for _, broken := range p.Axe("color-contrast", "link-in-text-block") {
						t.Errorf("in the dark: %s", broken)
					}
				})
			}
		})
	}
}
