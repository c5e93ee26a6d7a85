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
	for width, themes := range map[int64]int{1400: 2, 390: 1} {
		t.Run(fmt.Sprint(width), func(t *testing.T) {
			t.Parallel()
			p := browser.Open(t)
			p.Size(width, 900)
			for _, a := range pages {
				t.Run(a.address, func(t *testing.T) {
					for _, dark := range []bool{false, true}[:themes] {
						p.Dark(dark)
						p.Go(s.url + a.address)
						p.Until("the page is live", `document.readyState === "complete" &&
							(!document.body.dataset.live || document.querySelector(".status.live"))`)
						for _, broken := range p.Axe() {
							t.Errorf("dark %v: %s", dark, broken)
						}
						if pixels, elements := p.Wide(); pixels > 0 {
							t.Errorf("the page is %d pixels wider than its window: %q", pixels, elements)
						}
					}
				})
			}
		})
	}
}
