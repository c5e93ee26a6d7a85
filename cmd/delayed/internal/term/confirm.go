package term

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"strings"
)

// Confirm asks a question that is answered with y or yes; anything else means no, and so does the end of ctx.
func Confirm(ctx context.Context, in io.Reader, out io.Writer, question string) bool {
	fmt.Fprintf(out, "%s [y/N] ", Printable(question))
	answer := make(chan string, 1)
	go func() { // ends with the line, or with the process
		line, _ := bufio.NewReader(in).ReadString('\n')
		answer <- line
	}()
	select {
	case line := <-answer:
		switch strings.ToLower(strings.TrimSpace(line)) {
		case "y", "yes":
			return true
		}
	case <-ctx.Done():
		fmt.Fprintln(out)
	}
	return false
}
