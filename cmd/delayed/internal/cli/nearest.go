package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/godelayed/delayed/inspect"
)

const (
	// mostNear bounds how many names are proposed in place of one that nobody knows.
	mostNear = 3
	// longNear is the length of names that are compared no more, and manyNear how many are compared.
	longNear, manyNear = 100, 10_000
)

// nearest returns the words that ask whether somebody meant one of the known names, or none if no known name begins
// like the given one or differs from it in one or two letters, whether they are capitals or not.
func nearest(name string, known []string) string {
	if name == "" || len(name) > longNear {
		return ""
	}
	// Package cobra measures how alike names of commands are.
	names := &cobra.Command{SuggestionsMinimumDistance: min(len(name)/2, 2)}
	for _, k := range known[:min(len(known), manyNear)] {
		if len(k) <= longNear && !strings.Contains(k, " ") { // cobra takes what precedes the blank for the name
			names.AddCommand(&cobra.Command{Use: k, Run: func(*cobra.Command, []string) {}})
		}
	}
	near := names.SuggestionsFor(name)
	slices.Sort(near)
	near = slices.Compact(near)
	near = near[:min(len(near), mostNear)]
	for i := range near {
		near[i] = quote(near[i])
	}
	if len(near) == 0 {
		return ""
	}
	return "; did you mean " + strings.Join(near, " or ") + "?"
}

// queue returns a queue that must be known, with all that it holds. The error of an unknown one proposes another name.
func (a *app) queue(ctx context.Context, name string) (inspect.Queue, error) {
	q, err := a.ins.Queue(ctx, name)
	if errors.Is(err, inspect.ErrNotFound) {
		if known, failed := a.ins.Names(ctx); failed == nil {
			err = fmt.Errorf("%w%s", err, nearest(name, known))
		}
	}
	return q, err
}

// nearFunction is nearest for functions, which people name by their last word, with or without its package.
func nearFunction(name string, functions []inspect.Function) string {
	var short, words []string
	for i := range functions {
		full := inspect.ShortName(functions[i].Path)
		short = append(short, full)
		words = append(words, full[strings.LastIndexByte(full, '.')+1:])
	}
	if strings.Contains(name, ".") {
		words = short
	}
	return nearest(name, words)
}
