// Package photos has functions that an application might want to run in the background. It is ordinary Go: it does not
// use delayed.
package photos

import (
	"bytes"
	"context"
	"fmt"
	"image"
	"image/jpeg"
	"io"
	"net/http"
	"os"
	"path"
)

// Fetch copies a photo from one address to another.
func Fetch(ctx context.Context, from, to string) error {
	photo, err := get(ctx, from)
	if err != nil {
		return err
	}
	return put(ctx, to, photo)
}

// Thumbnail puts a copy of a photo, scaled down to a width, to another address.
func Thumbnail(ctx context.Context, from, to string, width int) error {
	file, err := get(ctx, from)
	if err != nil {
		return err
	}
	photo, _, err := image.Decode(bytes.NewReader(file))
	if err != nil {
		return fmt.Errorf("%s: %w", from, err)
	}
	var thumbnail bytes.Buffer
	if err := jpeg.Encode(&thumbnail, scale(photo, width), nil); err != nil {
		return err
	}
	return put(ctx, to, thumbnail.Bytes())
}

// Report writes a page about thumbnails.
func Report(ctx context.Context, thumbnails []string, to string) error {
	var page bytes.Buffer
	for _, from := range thumbnails {
		file, err := get(ctx, from)
		if err != nil {
			return err
		}
		size, _, err := image.DecodeConfig(bytes.NewReader(file))
		if err != nil {
			return fmt.Errorf("%s: %w", from, err)
		}
		fmt.Fprintf(&page, "%-15s %d × %d pixels, %d bytes\n", path.Base(from), size.Width, size.Height, len(file))
	}
	return put(ctx, to, page.Bytes())
}

func get(ctx context.Context, url string) ([]byte, error) {
	return request(ctx, http.MethodGet, url, nil)
}

func put(ctx context.Context, url string, content []byte) error {
	_, err := request(ctx, http.MethodPut, url, content)
	return err
}

func request(ctx context.Context, method, url string, content []byte) ([]byte, error) {
	r, err := http.NewRequestWithContext(ctx, method, url, bytes.NewReader(content))
	if err != nil {
		return nil, err
	}
	r.Header.Set("User-Agent", fmt.Sprintf("process/%d", os.Getpid()))
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("%s %s: %s", method, url, resp.Status)
	}
	return io.ReadAll(resp.Body)
}
