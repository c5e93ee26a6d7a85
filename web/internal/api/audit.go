package api

import (
	_ "embed" // for the description
	"encoding/json"
	"maps"

	"github.com/godelayed/delayed/inspect"
	"github.com/godelayed/delayed/inspect/document"
)

//go:embed openapi.json
var openAPI []byte

func apiDescription(*shared, *apiCall) (json.RawMessage, error) { return openAPI, nil }

// meAnswer is the user of a request.
type meAnswer struct {
	Name            string `json:"name"`
	Role            string `json:"role"`             // viewer, operator or admin
	ReadOnly        bool   `json:"read_only"`        // nobody may change anything
	ArgumentsHidden bool   `json:"arguments_hidden"` // as are headers, results and errors
}

func apiMe(s *shared, c *apiCall) (meAnswer, error) {
	return meAnswer{c.User.Name, c.User.Role.String(), s.Config.ReadOnly, s.Hidden(c.User)}, nil
}

func apiAudit(s *shared, c *apiCall) (v document.Audit, err error) {
	skip, err := c.number(skipParam)
	if err != nil {
		return v, err
	}
	limit, err := c.number(limitParam)
	if err != nil {
		return v, err
	}
	records, err := c.Ins.Audit(c.Ctx, skip, limit)
	if s.Hidden(c.User) {
		for i := range records {
			if f := records[i].Filter; f != nil {
				records[i].Filter = veiled(f)
			}
		}
	}
	return document.AuditOf(records), err
}

// veiled returns a filter without what looks at arguments, headers and errors.
func veiled(f *inspect.Filter) *inspect.Filter {
	own := *f
	for _, text := range []*string{&own.Text, &own.Arg, &own.Error} {
		if *text != "" {
			*text = "…"
		}
	}
	own.Headers = maps.Clone(f.Headers)
	for key := range own.Headers {
		own.Headers[key] = "…"
	}
	return &own
}
