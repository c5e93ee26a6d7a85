//go:build unix

package dashboard_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/godelayed/delayed"
	"github.com/godelayed/delayed/itest/dashboard/browser"
)

// BenchmarkFirstPaint measures how long the browser takes from when a page is asked for until something of it is seen,
// with a million tasks and a worker beside. It tells the median and the longest time of each page.
func BenchmarkFirstPaint(b *testing.B) {
	s := newSite(b, asAdmin)
	s.fill()
	q := delayed.NewQueue(queueName+"-full", s.rdb)
	calls := make([]*delayed.Task, 1000)
	for i := range calls {
		calls[i] = delayed.NewGoTask("mail.Welcome", i, "en")
	}
	for range 1000 {
		_, err := q.DelayMany(b.Context(), calls...)
		s.Must(err)
	}
	for _, page := range []string{
		"./", "queue?name=mail-full", "tasks?queue=mail-full&state=pending", "tasks?queue=mail&state=archived",
		"workers", "functions", "periodic", "audit",
	} {
		name, _, _ := strings.Cut(page, "&")
		b.Run(name, func(b *testing.B) {
			p := browser.Open(b)
			p.Go(s.url + page) // styles and scripts are kept from then on
			var took []float64
			for b.Loop() {
				p.Go(s.url + page)
				painted := `performance.getEntriesByName("first-contentful-paint")[0]`
				p.Until("something is seen", painted)
				var ms float64
				p.Eval(painted+".startTime", &ms)
				took = append(took, ms)
			}
			slices.Sort(took)
			b.ReportMetric(took[len(took)/2], "ms/median")
			b.ReportMetric(took[len(took)-1], "ms/longest")
			b.ReportMetric(0, "ns/op")
		})
	}
}
