// Package exec carries out the orders of a library. It has nothing to do with os/exec.
package exec

import (
	"context"
	"fmt"
	"os/exec"
)

// Command orders a book.
func Command(publisher string, isbns ...string) error {
	if publisher == "" {
		return fmt.Errorf("exec: nobody to order %d books from", len(isbns))
	}
	return nil
}

// Label prints the label of a book, and chooses itself what it runs.
func Label(ctx context.Context, book int64) error {
	return exec.CommandContext(ctx, "lp", fmt.Sprintf("/labels/%d.pdf", book)).Run()
}
