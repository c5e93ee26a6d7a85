package function

import (
	"encoding/json"

	"github.com/godelayed/delayed/internal/catalog"
	"github.com/godelayed/delayed/internal/wire"
)

// maxListing bounds the listing of its functions that a worker publishes on each queue, in bytes.
const maxListing = 64 << 10

// published is the listing of the functions that a registry held at some time.
type published struct {
	known   *map[string]*Function
	listing []byte
}

// Listing describes the functions as docs/PROTOCOL.md defines that, within maxListing. It also returns a value that
// differs after each change.
func (r *Registry) Listing() ([]byte, any) {
	known := r.known.Load()
	if t := r.published.Load(); t != nil && t.known == known {
		return t.listing, known
	}
	t := &published{known, r.list()}
	r.published.Store(t)
	return t.listing, known
}

// list encodes the listing, in the order of paths, of as many functions as fit.
func (r *Registry) list() []byte {
	fns := r.All()
	for n := len(fns); ; n /= 2 {
		all := catalog.List{Version: catalog.Version, Functions: make([]catalog.Function, 0, n), More: len(fns) - n}
		var shapes wire.Shapes
		for _, fn := range fns[:n] {
			info := fn.Info()
			f := catalog.Function{
				Path: info.Path, Aliases: info.Aliases, Variadic: info.Variadic,
				Optional: info.Optional,
			}
			// The types were accepted when the function was registered.
			if f.SetTypes(&shapes, info.Params, info.Result) == nil {
				all.Functions = append(all.Functions, f)
			}
		}
		all.Types = shapes.Types
		if b, err := json.Marshal(all); err == nil && len(b) <= maxListing || n == 0 {
			return b
		}
	}
}
