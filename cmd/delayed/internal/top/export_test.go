package top

import (
	"context"

	"github.com/godelayed/delayed/inspect"
)

// ProblemsScreen returns what the screen of problems shows on a wide terminal, without colours, while one after the
// other is selected.
func ProblemsScreen(ctx context.Context, ins *inspect.Inspector) (shown string, err error) {
	m := newModel(ctx, Config{Unicode: true}, newLive(ins))
	m.width, m.height = 2000, 24
	s := newProblemsScreen(m)
	show, err := s.fetch()(ctx)
	show()
	m.stack = []*place{{screen: s}}
	for range s.items {
		//nolint:contextcheck // the framework calls View without one
		shown += sgr.ReplaceAllString(m.View().Content, "")
		s.moveKey("down")
	}
	return shown, err
}
