// Package render makes documents of tables.
package render

import (
	"bytes"
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"os/exec"
	"strconv"
	"time"

	"github.com/godelayed/delayed"

	"example.com/app/blind/apps/reports/data"
)

// ErrFormat says that a format is unknown.
var ErrFormat = errors.New("render: expected csv or pdf")

// Document is a rendered report.
type Document struct {
	Name, Format string
	Content      []byte
	Made         time.Time
}

// CSV renders a table.
func CSV(ctx context.Context, table data.Table, metrics ...data.Metric) (Document, error) {
	var content bytes.Buffer
	w := csv.NewWriter(&content)
	for i, row := range table.Rows {
		record := []string{row.Day.Format(time.DateOnly)}
		for _, m := range metrics {
			record = append(record, strconv.FormatFloat(row.Values[m], 'f', 2, 64))
		}
		if err := w.Write(record); err != nil {
			return Document{}, err
		}
		if err := delayed.Progress(ctx, int64(i+1), int64(len(table.Rows)), "rows"); err != nil {
			return Document{}, err
		}
	}
	w.Flush()
	return Document{Name: string(table.Tenant), Format: "csv", Content: content.Bytes(), Made: time.Now()}, w.Error()
}

// PDF renders a table by a program that may hang; so it runs in a child process.
func PDF(ctx context.Context, table data.Table, landscape bool, scale float32) (Document, error) {
	args := []string{"--tenant", string(table.Tenant), "--scale", fmt.Sprint(scale)}
	if landscape {
		args = append(args, "--landscape")
	}
	content, err := exec.CommandContext(ctx, "table2pdf", args...).Output()
	if err != nil {
		return Document{}, fmt.Errorf("render: %s: %w", table.Tenant, err)
	}
	return Document{Name: string(table.Tenant), Format: "pdf", Content: content, Made: time.Now()}, nil
}
