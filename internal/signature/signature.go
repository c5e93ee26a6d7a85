// Package signature writes a worker's functions as JSON, for programs in other languages. docs/PROTOCOL.md describes
// the format.
package signature

import (
	"encoding/json"
	"io"

	"github.com/godelayed/delayed/internal/catalog"
	"github.com/godelayed/delayed/internal/function"
	"github.com/godelayed/delayed/internal/wire"
)

// Write writes functions to out, with names of parameters where the source can be read.
func Write(out io.Writer, infos []function.Info) error {
	all := catalog.List{Version: catalog.Version, Functions: []catalog.Function{}}
	var shapes wire.Shapes
	var src sources
	for i := range infos {
		info := &infos[i]
		f := catalog.Function{Path: info.Path, Aliases: info.Aliases, Variadic: info.Variadic, Optional: info.Optional}
		if err := f.SetTypes(&shapes, info.Params, info.Result); err != nil {
			return err
		}
		for i, name := range src.names(info) {
			f.Params[i].Name = name
		}
		all.Functions = append(all.Functions, f)
	}
	all.Types = shapes.Types
	e := json.NewEncoder(out)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	return e.Encode(all)
}
