// Package media prepares pictures and sums of sales.
package media

import (
	"fmt"

	"github.com/godelayed/delayed"
)

// Number is what can be added.
type Number interface{ ~int | ~int64 | ~float64 }

// Resize makes a picture smaller.
func Resize(path string, width, height uint16, quality uint8) error {
	if quality > 100 {
		return fmt.Errorf("media: %s %dx%d: quality is %d, expected at most 100", path, width, height, quality)
	}
	return nil
}

// Poster makes the poster of an event in a language.
func Poster(eventID int64, lang string) error {
	if lang == "" {
		return fmt.Errorf("media: poster of %d without a language", eventID)
	}
	return nil
}

// Sum adds the sales of several counters.
func Sum[T Number](values []T) T {
	var sum T
	for _, v := range values {
		sum += v
	}
	return sum
}

// Functions with a path or defaults of their own.
var (
	Thumbnail = delayed.Func(Resize, delayed.Name("media.thumbnail"), delayed.MaxRetry(3))
	SumInts   = delayed.Func(Sum[int], delayed.Name("media.sum.int"))
	NewPoster = delayed.Func(Poster, delayed.Optional(1))
)
