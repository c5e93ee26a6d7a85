// Package mail has the functions of an application. It knows neither asynq nor delayed.
package mail

import (
	"context"
	"fmt"
	"io"
	"os"
)

// Out is where mails are written to.
var Out io.Writer = os.Stdout

// Welcome sends a mail to a new user.
func Welcome(_ context.Context, userID int64, lang string) error {
	_, err := fmt.Fprintf(Out, "welcome %d %s\n", userID, lang)
	return err
}
