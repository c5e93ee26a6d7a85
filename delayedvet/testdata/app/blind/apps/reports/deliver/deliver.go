// Package deliver brings documents to those who want them.
package deliver

import (
	"context"
	"database/sql"
	"fmt"
	"time"

	"github.com/godelayed/delayed"

	"example.com/app/blind/apps/reports/render"
)

// Outbox records what was delivered. Workers register its methods.
type Outbox struct {
	db   *sql.DB
	send func(ctx context.Context, to string, d render.Document) error
	now  func() time.Time
}

// NewOutbox returns an outbox on a database.
func NewOutbox(db *sql.DB, send func(context.Context, string, render.Document) error) *Outbox {
	return &Outbox{db: db, send: send, now: time.Now}
}

// Exec is no method of a database: it delivers what is planned.
func (o *Outbox) Exec(ctx context.Context, plan int64) (int64, error) {
	result, err := o.db.ExecContext(ctx, "UPDATE plans SET done = ? WHERE id = ?", o.now(), plan)
	if err != nil {
		return 0, err
	}
	return result.RowsAffected()
}

// Deliver delivers a document, once for each task.
func (o *Outbox) Deliver(ctx context.Context, to string, d render.Document) error {
	key := ""
	if task := delayed.TaskFromContext(ctx); task != nil {
		key = task.IdempotencyKey()
	}
	var sent int
	row := o.db.QueryRowContext(ctx, "SELECT count(*) FROM outbox WHERE key = ?", key)
	if err := row.Scan(&sent); err != nil {
		return err
	}
	if sent > 0 {
		return nil
	}
	if err := o.send(ctx, to, d); err != nil {
		return fmt.Errorf("deliver: %s to %s: %w", d.Name, to, err)
	}
	_, err := o.db.ExecContext(ctx, "INSERT INTO outbox (key, at) VALUES (?, ?)", key, o.now())
	return err
}

// Notify tells people of new documents; the calls of a minute come together.
func Notify(ctx context.Context, channel string, names []string) error {
	if len(names) == 0 {
		return delayed.Drop(nil)
	}
	return ctx.Err()
}
