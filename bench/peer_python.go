package main

// The peers of the command `python`, which alone measures most of them.

// pythonOfTree is the interpreter that has the Python package of this repository, and keakon's; `make setup` installs
// both.
const pythonOfTree = "../.venv/bin/python"

var pythonPeers = []*peer{
	script(&peer{
		name:        "godelayed",
		about:       "tasks run in one thread of the worker's process",
		concurrency: 1,
	}, pythonOfTree, "drivers/drive.py", "godelayed"),
	script(&peer{
		name:        "godelayed-extended",
		about:       "the same, with messages that have an id, which options need",
		concurrency: 1,
	}, pythonOfTree, "drivers/drive.py", "godelayed-extended"),
	script(&peer{
		name:        "godelayed-processes",
		about:       "as it comes: 2 worker processes, whose tasks can be ended",
		share:       0.5,
		concurrency: 2,
	}, pythonOfTree, "drivers/drive.py", "godelayed-processes"),
	script(&peer{
		name:        "keakon",
		about:       "keakon's package `delayed` as it comes: one task at a time in the worker's process",
		share:       0.2,
		concurrency: 1,
	}, pythonOfTree, "drivers/drive.py", "keakon"),
	script(&peer{
		name:        "rq",
		about:       "SimpleWorker: one task at a time in the worker's process; no results",
		share:       0.02,
		concurrency: 1,
	}, pythonOfPeers, "drivers/drive.py", "rq"),
	script(&peer{
		name:        "rq-fork",
		about:       "as it comes: a process is forked for each task",
		most:        200,
		concurrency: 1,
	}, pythonOfPeers, "drivers/drive.py", "rq-fork"),
	script(&peer{
		name: "celery-solo",
		about: "solo pool: one task at a time in the worker's process; acknowledges before a task runs; no " +
			"results, gossip, mingle and heartbeat",
		share:       0.04,
		concurrency: 1,
	}, pythonOfPeers, "drivers/drive.py", "celery-solo"),
	script(&peer{
		name:        "celery-threads",
		about:       "the same with a pool of 2 threads",
		share:       0.04,
		concurrency: 2,
	}, pythonOfPeers, "drivers/drive.py", "celery-threads"),
	script(&peer{
		name:        "celery-defaults",
		about:       "the same as it comes: prefork pool of 2",
		share:       0.04,
		concurrency: 2,
	}, pythonOfPeers, "drivers/drive.py", "celery-defaults"),
	script(&peer{
		name:        "dramatiq-threads",
		about:       "a worker of 8 threads in one process",
		share:       0.1,
		concurrency: 8,
	}, pythonOfPeers, "drivers/drive.py", "dramatiq-threads"),
	script(&peer{
		name:        "dramatiq",
		about:       "as it comes: 2 processes of 8 threads",
		share:       0.1,
		concurrency: 16,
	}, pythonOfPeers, "drivers/drive.py", "dramatiq"),
}
