// Package mail holds the functions that ../producer delays and ../worker runs. Both programs import it; a task contains
// only the path of a function and its arguments. To keep the example small, the functions print mails.
package mail

import (
	"context"
	"fmt"
	"strings"
)

// Order is what a customer has bought. Tasks contain all exported fields of structs.
type Order struct {
	ID    int64
	Lines []Line
}

// Line is one line of an order.
type Line struct {
	Article string
	Count   int
	Cents   int64 // for each article
}

// Welcome greets a new user. The context is the worker's: it is not sent, and ends early when the worker must stop.
func Welcome(ctx context.Context, userID int64, lang string) error {
	greeting, ok := map[string]string{"en": "Welcome", "de": "Willkommen"}[lang]
	if !ok {
		return fmt.Errorf("no greeting in language %q", lang) // the task is tried again later: by then there may be one
	}
	return send(ctx, userID, greeting)
}

// Receipt confirms an order.
func Receipt(ctx context.Context, userID int64, order Order) error {
	var total int64
	for _, l := range order.Lines {
		total += int64(l.Count) * l.Cents
	}
	return send(ctx, userID,
		fmt.Sprintf("Order %d, %d lines, %d.%02d EUR", order.ID, len(order.Lines), total/100, total%100))
}

// Digest tells a user about new articles.
func Digest(ctx context.Context, userID int64, articles ...string) error {
	return send(ctx, userID, "New: "+strings.Join(articles, ", "))
}

func send(_ context.Context, userID int64, text string) error {
	_, err := fmt.Printf("mail to user %d: %s\n", userID, text)
	return err
}
