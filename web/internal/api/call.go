package api

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"reflect"
	"strconv"
	"strings"

	"github.com/godelayed/delayed/inspect"
	"github.com/godelayed/delayed/inspect/call"
	"github.com/godelayed/delayed/web/internal/auth"
	"github.com/godelayed/delayed/web/internal/site"
)

// apiCall is one request of the API.
type apiCall struct {
	*site.Request

	site     *site.Site
	events   *site.Hub
	http     *http.Request
	bearer   bool   // it has a token with it, so it is not a browser's doing
	location string // of what was made
}

// problemAnswer says what is wrong with a request, or why it cannot be answered; see RFC 9457.
type problemAnswer struct {
	Title  string `json:"title"`  // what HTTP calls it
	Status int    `json:"status"` // of the answer
	Detail string `json:"detail"` // what was expected, what was found, and what to do
}

// admit checks what all endpoints check, and reads the parameters.
func (c *apiCall) admit(e *Endpoint) (err error) {
	if err := c.site.Allow(c.User, e.Role); err != nil {
		return err
	}
	changes := e.Method != http.MethodGet
	if changes && !c.bearer {
		if c.http.Header.Get(auth.CSRFHeader) == "" {
			return site.Forbidden(`expected a token as in "Authorization: Bearer TOKEN", or of a browser the header ` +
				auth.CSRFHeader + " with the value of its cookie " + auth.CSRFCookie)
		}
		if err := auth.CheckCSRF(c.http); err != nil {
			return site.Forbidden(err.Error())
		}
	}
	c.Path = e.Path
	if c.Args, err = c.query(e.params); err != nil {
		return err
	}
	if strings.Contains(e.Path, "{queue}") {
		if err := c.site.CheckName(c.in("queue")); err != nil {
			return err
		}
	}
	if e.body == nil && changes {
		return c.noBody()
	}
	return nil
}

// in returns a part of the path, such as the name of a queue.
func (c *apiCall) in(name string) string { return c.http.PathValue(name) }

// hidden reports whether arguments are hidden from the user.
func (c *apiCall) hidden() bool { return c.site.Hidden(c.User) }

// described returns the queues that the address names, or all; names is empty then.
func (c *apiCall) described() (queues []inspect.Queue, names []string, err error) {
	names = c.Args[queuesParam.Name]
	if len(names) == 0 {
		queues, err = c.site.Queues(c.Request)
		return queues, nil, err
	}
	for _, name := range names {
		q, err := c.Ins.Queue(c.Ctx, name)
		if err != nil {
			return nil, nil, err
		}
		queues = append(queues, q)
	}
	return queues, names, nil
}

// noBody returns an error if there is a body, because it would be ignored.
func (c *apiCall) noBody() error {
	text, err := io.ReadAll(c.http.Body)
	switch text = bytes.TrimSpace(text); {
	case err != nil:
		return err
	case len(text) > 0 && string(text) != "{}":
		return site.Bad("expected no body, because the address says it all, found " +
			strconv.Quote(call.Clip(string(text), 60)))
	}
	return nil
}

// decode reads the body, a JSON object with the fields of what v points to and no others.
func (c *apiCall) decode(v any) error {
	kind, _, _ := strings.Cut(c.http.Header.Get("Content-Type"), ";")
	if kind = strings.TrimSpace(kind); !strings.EqualFold(kind, "application/json") {
		return site.Fail(http.StatusUnsupportedMediaType,
			"expected the header Content-Type to be application/json, found "+strconv.Quote(call.Clip(kind, 60)))
	}
	d := json.NewDecoder(c.http.Body)
	d.DisallowUnknownFields()
	err := d.Decode(v)
	if err == nil {
		if _, err = d.Token(); errors.Is(err, io.EOF) {
			return nil
		} else if err == nil {
			err = errors.New("more than one JSON value")
		}
	}
	return wrongBody(err, v)
}

// wrongBody explains what is wrong with a body.
func wrongBody(err error, v any) error {
	var large *http.MaxBytesError
	var kind *json.UnmarshalTypeError
	switch {
	case errors.As(err, &large):
		return err
	case errors.As(err, &kind) && kind.Field != "":
		return site.Bad(fmt.Sprintf("the body: field %s: expected %s, found %s", call.Clip(kind.Field, 60),
			wordFor(kind.Type), call.Clip(kind.Value, 60)))
	case errors.Is(err, io.EOF):
		return site.Bad("expected a JSON object with the fields " + fieldsOf(v) + ", found an empty body")
	}
	text := strings.TrimPrefix(err.Error(), "json: ")
	return site.Bad("the body: " + call.Clip(text, 200) + ": expected a JSON object with the fields " + fieldsOf(v))
}

// up leads from the address of the request to that of the API.
func (c *apiCall) up() string { return strings.Repeat("../", strings.Count(c.Path, "/")) }

// wordFor names a type of a field as JSON does.
func wordFor(t reflect.Type) string {
	switch t.Kind() {
	case reflect.Pointer:
		return wordFor(t.Elem())
	case reflect.String:
		return "a text"
	case reflect.Bool:
		return "true or false"
	case reflect.Slice:
		return "an array"
	case reflect.Struct, reflect.Map:
		return "an object"
	default:
		return "a whole number"
	}
}

// fieldsOf lists the fields of a body.
func fieldsOf(v any) string {
	var names []string
	for _, f := range reflect.VisibleFields(reflect.TypeOf(v).Elem()) {
		if name, _, _ := strings.Cut(f.Tag.Get("json"), ","); name != "" {
			names = append(names, name)
		}
	}
	return strings.Join(names, ", ")
}
