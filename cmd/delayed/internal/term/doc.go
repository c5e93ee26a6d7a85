// Package term writes to terminals: tables that fit their width, colours, progress bars and questions. Texts of tasks
// reach the terminal only through Cell, which escapes all that does not print. It also reads durations and times as
// people write them.
package term
