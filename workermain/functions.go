package workermain

import (
	"context"
	"fmt"
	"io"

	"github.com/godelayed/delayed/internal/function"
	"github.com/godelayed/delayed/internal/signature"
)

// list prints the registered functions, including those of Setup.
func (p *program) list(out io.Writer) int {
	if p.setup != nil {
		if err := p.setup(context.Background(), p.worker); err != nil {
			return p.fail(fmt.Errorf("setting up: %w", err))
		}
	}
	var infos []function.Info
	for _, info := range p.worker.Functions() {
		infos = append(infos, function.Info(info))
	}
	if err := signature.Write(out, infos); err != nil {
		return p.fail(err)
	}
	return exitClean
}
