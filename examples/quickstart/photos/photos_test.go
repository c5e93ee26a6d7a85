package photos

import (
	"bytes"
	"fmt"
	"image"
	"image/color"
	"image/jpeg"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
)

func TestScaleAverages(t *testing.T) {
	// A board of black and white fields, which starts off the origin as pictures may.
	board := image.NewGray(image.Rect(10, 20, 10+8, 20+4))
	for y := 20; y < 24; y++ {
		for x := 10; x < 18; x++ {
			if (x+y)%2 == 0 {
				board.SetGray(x, y, color.Gray{Y: 200})
			}
		}
	}
	small := scale(board, 4)
	if want := image.Rect(0, 0, 4, 2); small.Bounds() != want {
		t.Fatalf("expected %v, found %v", want, small.Bounds())
	}
	for y := range 2 {
		for x := range 4 {
			if got := small.At(x, y); got != (color.RGBA{R: 100, G: 100, B: 100, A: 255}) {
				t.Errorf("at %d, %d: expected grey of 100, found %v", x, y, got)
			}
		}
	}
}

func TestScaleOfOddSizes(t *testing.T) {
	for _, size := range []image.Point{{1, 1}, {1000, 1}, {1, 1000}, {7, 5}, {160, 120}} {
		for _, width := range []int{1, 3, 160, 5000} {
			got := scale(image.NewRGBA(image.Rectangle{Max: size}), width).Bounds().Size()
			if got.X != min(width, size.X) || got.Y < 1 || got.Y > size.Y {
				t.Errorf("%v to width %d: found %v", size, width, got)
			}
		}
	}
}

// TestFunctions calls the functions without any queue: they are ordinary functions.
func TestFunctions(t *testing.T) {
	var photo bytes.Buffer
	if err := jpeg.Encode(&photo, image.NewGray(image.Rect(0, 0, 40, 30)), nil); err != nil {
		t.Fatal(err)
	}
	files := map[string][]byte{"/a.jpg": photo.Bytes(), "/text": []byte("no photo")}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch file := files[r.URL.Path]; {
		case r.Method == http.MethodPut:
			files[r.URL.Path], _ = io.ReadAll(r.Body)
		case file == nil:
			http.NotFound(w, r)
		default:
			_, _ = w.Write(file)
		}
	}))
	defer server.Close()
	for _, err := range []error{
		Fetch(t.Context(), server.URL+"/a.jpg", server.URL+"/b.jpg"),
		Thumbnail(t.Context(), server.URL+"/b.jpg", server.URL+"/c.jpg", 8),
		Report(t.Context(), []string{server.URL + "/b.jpg", server.URL + "/c.jpg"}, server.URL+"/report"),
	} {
		if err != nil {
			t.Error(err)
		}
	}
	want := fmt.Sprintf("b.jpg           40 × 30 pixels, %d bytes\nc.jpg           8 × 6 pixels, %d bytes\n",
		photo.Len(), len(files["/c.jpg"]))
	if got := string(files["/report"]); got != want {
		t.Errorf("expected %q, found %q", want, got)
	}
	for _, err := range []error{
		Fetch(t.Context(), server.URL+"/none", server.URL+"/b.jpg"),
		Thumbnail(t.Context(), server.URL+"/none", server.URL+"/c.jpg", 8),
		Thumbnail(t.Context(), server.URL+"/text", server.URL+"/c.jpg", 8),
		Report(t.Context(), []string{server.URL + "/text"}, server.URL+"/report"),
	} {
		if err == nil {
			t.Error("expected an error")
		}
	}
}
