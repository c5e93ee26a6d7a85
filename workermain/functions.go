package workermain

import (
	"context"
	"fmt"
	"io"

	"github.com/godelayed/delayed/internal/function"
	"github.com/godelayed/delayed/internal/seam"
	"github.com/godelayed/delayed/internal/signature"
)

// list prints the registered functions, including those of Setup.
func (p *program) list(out io.Writer) int {
	if p.setup != nil {
		if err := p.setup(context.Background(), p.worker); err != nil {
			return p.fail(fmt.Errorf("setting up: %w", err))
		}
	}
	infos := seam.Functions(p.worker).([]function.Info) //nolint:errcheck // by contract
	if err := signature.Write(out, infos); err != nil {
		return p.fail(err)
	}
	return exitClean
}
