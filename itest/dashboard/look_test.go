//go:build unix

package dashboard_test

import (
	"testing"

	"github.com/godelayed/delayed/itest/dashboard/browser"
)

// TestPagesInBrowser opens a page of each kind on a wide screen, in light and dark colours, and on a narrow one: the
// browser has nothing to complain of, everybody can use the page as far as axe-core can tell, and nothing but wide
// tables scrolls to the side. The page is loaded once: only its styles know of colours and widths.
func TestPagesInBrowser(t *testing.T) {
	t.Parallel()
	s := newSite(t, calm(asAdmin))
	s.fill()
	p := browser.Open(t)
	for _, a := range append(s.crawl(kindOfDocument), s.get(forgotten)) {
		t.Run(a.address, func(t *testing.T) {
			p.Size(wide, 900)
			p.Dark(false)
			p.Go(s.url + a.address)
			p.Until("the page is live", live)
			for _, broken := range p.Axe() {
				t.Error(broken)
			}
			fits(t, p)
			p.Dark(true)
			for _, broken := range p.Axe("color-contrast", "link-in-text-block") {
				t.Errorf("in the dark: %s", broken)
			}
			p.Size(narrow, 900)
			for _, broken := range p.Axe("scrollable-region-focusable", "target-size") { // others know no widths
				t.Errorf("on a phone: %s", broken)
			}
			fits(t, p)
		})
	}
}

// fits fails the test if the page is wider than its window.
func fits(t testing.TB, p *browser.Page) {
	t.Helper()
	if pixels, elements := p.Wide(); pixels > 0 {
		t.Errorf("the page is %d pixels wider than its window: %q", pixels, elements)
	}
}
