package main

// rules are what a module is held to.
type rules struct {
	// floors are the packages, ground first: a package may import those of its own floor and of the floors below.
	floors [][]string
	// lines is the most that a file may have, testLines the most that a test in Go may have.
	lines, testLines int
	// columns is the most that a line may have; a tab counts as four.
	columns int
	// knot is the most files of one package that may use each other in a circle.
	knot int
	// exported is the most package-level names that the package at the root may export.
	exported int
	// fields is the most fields of structs that may hold functions.
	fields int
	// entries is the most files and folders that a listing of the root folder may show.
	entries int
	// hidden are the names of files and folders that may begin with a dot.
	hidden []string
}

// ours are the rules of this repository. Paths are relative to the module; "." is the package at its root.
var ours = rules{
	floors: [][]string{
		{
			"event", "state", "internal/wire", "internal/funcpath", "internal/catalog", "internal/redisurl",
			"internal/nearest", "internal/answer",
			"internal/staleconn", "internal/clientconn", "internal/loop", "internal/seam", "internal/metrics",
			"internal/buildinfo",
			// For tests only:
			"internal/childproc", "internal/fakeredis", "internal/faultnet", "internal/jsonschema",
			"internal/limits", "internal/redistest",
		},
		{"internal/lifecycle", "internal/isolate"},
		{"internal/function", "internal/schedule", "internal/group"},
		{"lua", "internal/signature"},
		{"internal/redisstore"},
		{"internal/sweep"},
		{"internal/engine/lane"},
		{"internal/engine/events", "internal/engine/child"},
		{"internal/engine/finish"},
		{"internal/engine/exec"},
		{"internal/engine/fetch", "internal/engine/beat"},
		{"internal/engine/move"},
		{"internal/engine"},
		{"."},
		{
			"inspect", "semaphore", "typed", "rediscluster", "redissentinel", "workermain",
			"internal/redistest/controltest", "internal/redistest/sourcetest",
		},
		{"inspect/call"},
		{"inspect/document"},
		{"inspect/scale"},
		{"web/internal/auth", "web/internal/format"},
		{"web/internal/chart", "web/internal/site"},
		{"web/internal/api", "web/internal/page"},
		{"web"},
	},
	lines:     500,
	testLines: 1200,
	columns:   120,
	knot:      10,
	exported:  111,
	fields:    88,
	entries:   75,
	hidden:    []string{".ci", ".editorconfig", ".github", ".gitignore", ".golangci.yml", ".npmrc"},
}
