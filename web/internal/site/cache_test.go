package site

import (
	"context"
	"errors"
	"testing"
	"time"
)

// An error is not kept: whoever asks next reads again.
func TestErrorsAreNotKept(t *testing.T) {
	t.Parallel()
	c := &cache{Life: time.Hour}
	reads := 0
	load := func(context.Context) (string, error) {
		if reads++; reads == 1 {
			return "", errors.New("Redis is away")
		}
		return "all", nil
	}
	if _, err := Read(t.Context(), c, "queues", load); err == nil {
		t.Fatal("the error is hidden")
	}
	for range 2 {
		if found, err := Read(t.Context(), c, "queues", load); err != nil || found != "all" {
			t.Errorf("after an error: %q, %v", found, err)
		}
	}
	if reads != 2 {
		t.Errorf("%d reads, expected 2", reads)
	}
}

// What was read is kept for as long as the cache says.
func TestCacheEnds(t *testing.T) {
	t.Parallel()
	c := &cache{Life: time.Nanosecond}
	reads := 0
	for range 3 {
		<-time.After(time.Microsecond) // longer than it lives
		_, err := Read(t.Context(), c, "queues", func(context.Context) (int, error) { reads++; return reads, nil })
		if err != nil {
			t.Fatal(err)
		}
	}
	if reads != 3 {
		t.Errorf("%d reads, expected 3", reads)
	}
}
