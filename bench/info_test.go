package main

import "testing"

func TestParseInfo(t *testing.T) {
	const text = "# CPU\r\nused_cpu_sys:1.5\r\nused_cpu_user:2.25\r\nused_memory:1000\r\nused_memory_rss:3000\r\n# " +
		"Commandstats\r\n" +
		"cmdstat_evalsha:calls=10,usec=500,usec_per_call=50.00\r\n" +
		"cmdstat_rpush:calls=7,usec=9,usec_per_call=1\r\ncmdstat_info:calls=3,usec=1\r\n"
	s, err := parseInfo(text)
	if err != nil {
		t.Fatal(err)
	}
	if s.cpu != 3.75 || s.memory != 1000 || s.resident != 3000 {
		t.Errorf("%+v", s)
	}
	before := &snapshot{
		cpu: 1.75, memory: 400, calls: map[string]float64{"evalsha": 4},
		micros: map[string]float64{"evalsha": 100},
	}
	d := s.since(before)
	calls, micros := d.scripts()
	if d.cpu != 2 || d.memory != 600 || d.commands() != 13 || calls != 6 || micros != 400 {
		t.Errorf("%+v: %v commands, %v scripts of %v µs", d, d.commands(), calls, micros)
	}
	if _, err := parseInfo("used_memory:much\r\n"); err == nil {
		t.Error("no error")
	}
}
