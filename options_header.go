package delayed

import (
	"context"
	"fmt"
	"maps"
	"unicode/utf8"

	"github.com/godelayed/delayed/internal/wire"
)

// Header adds a header to the task: a string that middleware and handlers read by Task.Header, such as a trace context
// or a tenant. It travels beside the arguments and stays with the task when it is retried. It may be given for several
// keys; for one key the last value holds. Keys and values are UTF-8, at most 64 headers and 8,192 bytes in all; keys
// are not empty and compared as they are. QueueConfig.Inject adds headers to every task of a queue.
func Header(key, value string) Option { return headerOption{key, value} }

type headerOption struct{ key, value string }

func (o headerOption) applyCall(c *callOptions) {
	c.headers = maps.Clone(c.headers) // queues made by With share it
	if c.headers == nil {
		c.headers = map[string]string{}
	}
	c.headers[o.key] = o.value
}

func (o headerOption) String() string { return fmt.Sprintf("Header(%q, %q)", o.key, o.value) }

// checkHeaders says why a message cannot carry headers. from says where they come from.
func checkHeaders(headers map[string]string, from string) error {
	if len(headers) > wire.MaxHeaders {
		return fmt.Errorf("%w: %s: %d headers, expected at most %d", ErrArguments, from, len(headers), wire.MaxHeaders)
	}
	size := 0
	for key, value := range headers {
		if key == "" || !utf8.ValidString(key) || !utf8.ValidString(value) {
			return fmt.Errorf("%w: %s: header %q, expected a key that is not empty, and key and value in UTF-8",
				ErrArguments, from, key)
		}
		size += len(key) + len(value)
	}
	if size > wire.MaxHeaderBytes {
		return fmt.Errorf("%w: %s: headers of %d bytes, expected at most %d: pass large values as arguments",
			ErrArguments, from, size, wire.MaxHeaderBytes)
	}
	return nil
}

// injected returns q with the headers that its Inject finds in ctx. Those given by Header hold.
func (q *Queue) injected(ctx context.Context) (*Queue, error) {
	if q.inject == nil {
		return q, nil
	}
	found := q.inject(ctx)
	if len(found) == 0 {
		return q, nil
	}
	c := *q
	c.options.injected = make(map[string]string, len(found)+len(q.options.headers))
	maps.Copy(c.options.injected, found) // Inject may use its map again
	maps.Copy(c.options.injected, q.options.headers)
	if err := checkHeaders(c.options.injected, "QueueConfig.Inject"); err != nil {
		return nil, err
	}
	return &c, nil
}

// withHeaders returns x with headers in it.
func withHeaders(x *wire.Extra, headers map[string]string) *wire.Extra {
	if len(headers) == 0 {
		return x
	}
	if x == nil {
		x = new(wire.Extra)
	}
	x.Headers = headers // neither changes any more
	return x
}
