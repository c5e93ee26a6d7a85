package redisstore

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// luaSource is a parsed script, as far as the rules of lua_test.go need it.
type luaSource struct {
	file   string // and its includes
	header luaHeader
	code   string // without comments
	bare   string // like code, with the text within quotes blanked
	calls  []luaCall
	loops  []luaLoop
}

// luaHeader is what the comment at the top of a script says.
type luaHeader struct {
	name, about        string
	keys               []string // what each of KEYS is, in order
	each               bool     // whether the keys repeat for each queue
	keysText, argvText string
	fixed              []int // numbers of arguments that occur once
	open               int   // number of the first argument that repeats, 0 for none
	width              int   // how many arguments form a group that repeats
	most               int   // how many groups of them there may be, 0 if the header does not say
	returns, cost      string
}

// luaCall is one redis.call.
type luaCall struct {
	command string
	args    []string // as written, the command excluded
	at      int      // offset in code
}

// luaLoop is one numeric for.
type luaLoop struct {
	variable, first, last, step string
	at                          int
}

var (
	luaSection = regexp.MustCompile(`^-- (KEYS|ARGV)  (\S.*)$|^-- (Returns) (\S.*)$|^-- (O\([^)]*\)\. .*\S)$`)
	luaEach    = regexp.MustCompile(`^for each (?:queue|worker|group): `)
	luaItem    = regexp.MustCompile(`(?:^|   )(\d+)(\.\.\.)? `)
	luaMost    = regexp.MustCompile(`at most ([\d,]+)`)
	luaQuoted  = regexp.MustCompile(`'[^']*'(?:(?:, | or )'[^']*')+`)
	luaFor     = regexp.MustCompile(`\bfor\s+(.*?)\s+do\b`)
	luaInclude = regexp.MustCompile(`(?m)^ *--#include (\w+)`)
	luaNumeric = regexp.MustCompile(`^(\w+)\s*=\s*(.*)$`)
)

// parseLua parses a script, joined with its includes. It returns what it cannot parse as problems of the script.
func parseLua(name, text string) (s *luaSource, problems []string) {
	s = &luaSource{file: "lua/" + name + ".lua"}
	for _, m := range luaInclude.FindAllStringSubmatch(text, -1) {
		s.file += " with include/" + m[1] + ".lua"
	}
	lines := strings.Split(text, "\n")
	body := slices.IndexFunc(lines, func(l string) bool {
		return !strings.HasPrefix(l, "--") || luaInclude.MatchString(l)
	})
	if body < 0 {
		return s, []string{"no code"}
	}
	problems = s.header.parse(lines[:body])
	if s.header.name != name {
		problems = append(problems, fmt.Sprintf("its header names it %q", s.header.name))
	}
	if len(lines) > 0 && lines[len(lines)-1] != "" {
		problems = append(problems, "no newline at the end")
	}
	code, bare, err := blankLua(strings.Join(lines[body:], "\n"))
	if err != nil {
		return s, append(problems, err.Error())
	}
	s.code, s.bare = code, bare
	problems = append(problems, s.findCalls()...)
	return s, append(problems, s.findLoops()...)
}

func (h *luaHeader) parse(lines []string) (problems []string) {
	if len(lines) == 0 {
		return []string{`no header: expected "-- name: what it does."`}
	}
	var ok bool
	if h.name, h.about, ok = strings.Cut(strings.TrimPrefix(lines[0], "-- "), ": "); !ok || h.about == "" {
		problems = append(problems, fmt.Sprintf(`first line %q: expected "-- name: what it does."`, lines[0]))
	}
	var found []string
	texts := map[string]string{}
	for _, line := range lines[1:] {
		if m := luaSection.FindStringSubmatch(line); m != nil {
			section, text := m[1]+m[3], m[2]+m[4]
			if m[5] != "" {
				section, text = "cost", m[5]
			}
			found, texts[section] = append(found, section), text
		} else if rest, ok := strings.CutPrefix(line, "--       "); ok && len(found) > 0 {
			texts[found[len(found)-1]] += "   " + strings.TrimSpace(rest)
		} else {
			problems = append(problems,
				fmt.Sprintf("header line %q: expected KEYS, ARGV, Returns, the cost, or a continuation", line))
		}
	}
	if want := []string{"KEYS", "ARGV", "Returns", "cost"}; !slices.Equal(found, want) {
		problems = append(problems, fmt.Sprintf("header has %q: expected %q", found, want))
	}
	h.keysText, h.argvText, h.returns, h.cost = texts["KEYS"], texts["ARGV"], texts["Returns"], texts["cost"]
	return append(append(problems, h.parseKeys()...), h.parseArgv()...)
}

func (h *luaHeader) parseKeys() (problems []string) {
	if m := luaEach.FindStringIndex(h.keysText); m != nil {
		h.each = true
		for name := range strings.SplitSeq(h.keysText[m[1]:], ",") {
			h.keys = append(h.keys, strings.TrimSpace(name))
		}
		return nil
	}
	at := luaItem.FindAllStringSubmatchIndex(h.keysText, -1)
	for i, m := range at {
		end := len(h.keysText)
		if i+1 < len(at) {
			end = at[i+1][0]
		}
		if h.keysText[m[2]:m[3]] != strconv.Itoa(i+1) || m[4] >= 0 {
			problems = append(problems, fmt.Sprintf("KEYS %q: expected them numbered from 1", h.keysText))
		}
		h.keys = append(h.keys, strings.TrimSpace(h.keysText[m[1]:end]))
	}
	return problems
}

func (h *luaHeader) parseArgv() (problems []string) {
	if h.argvText == "none" {
		return nil
	}
	for i, m := range luaItem.FindAllStringSubmatch(h.argvText, -1) {
		n, _ := strconv.Atoi(m[1])
		if n != i+1 || h.open > 0 {
			problems = append(problems,
				fmt.Sprintf("ARGV %q: expected them numbered from 1, with n... last", h.argvText))
		}
		if m[2] != "" {
			h.open, h.width = n, 1
		} else {
			h.fixed = append(h.fixed, n)
		}
	}
	_, rest, then := strings.Cut(h.argvText, "   then ")
	switch {
	case strings.HasPrefix(h.argvText, "for each "):
		h.open, rest = 1, h.argvText
	case strings.Contains(h.argvText, "   ... further pairs"):
		// The last two that have numbers are the first pair.
		if len(h.fixed) < 2 || h.open > 0 {
			return append(problems, fmt.Sprintf("ARGV %q: expected two numbered arguments before further pairs",
				h.argvText))
		}
		h.open, h.width = len(h.fixed)-1, 2
		h.fixed = h.fixed[:len(h.fixed)-2]
	case then && h.open == 0:
		h.open, h.width = len(h.fixed)+1, 1
	}
	if _, group, ok := strings.Cut(rest, "for each "); ok {
		if _, list, ok := strings.Cut(group, ": "); ok {
			list = luaQuoted.ReplaceAllString(strings.Join(strings.Fields(list), " "), "one-of")
			h.width = strings.Count(list, ",") + 1
		}
	}
	for _, m := range luaMost.FindAllStringSubmatch(h.argvText, -1) {
		n, _ := strconv.Atoi(strings.ReplaceAll(m[1], ",", ""))
		h.most = max(h.most, n)
	}
	return problems
}

// blankLua removes comments, and in bare also the text within quotes. Offsets in both results agree.
func blankLua(text string) (code, bare string, err error) {
	var c, b strings.Builder
	for i := 0; i < len(text); {
		switch {
		case strings.HasPrefix(text[i:], "--["), strings.HasPrefix(text[i:], "[["), strings.HasPrefix(text[i:], "[="):
			return "", "", fmt.Errorf("long brackets near %q: use quotes and -- comments", text[i:min(len(text), i+20)])
		case strings.HasPrefix(text[i:], "--"):
			for i < len(text) && text[i] != '\n' {
				i++
			}
		case text[i] == '\'' || text[i] == '"':
			end := i + 1
			for end < len(text) && text[end] != text[i] {
				if text[end] == '\\' || text[end] == '\n' {
					return "", "", fmt.Errorf("string with an escape or without an end near %q",
						text[i:min(len(text), i+20)])
				}
				end++
			}
			if end == len(text) {
				return "", "", fmt.Errorf("string without an end near %q", text[i:min(len(text), i+20)])
			}
			c.WriteString(text[i : end+1])
			b.WriteByte(text[i])
			b.WriteString(strings.Repeat(" ", end-i-1))
			b.WriteByte(text[i])
			i = end + 1
		default:
			c.WriteByte(text[i])
			b.WriteByte(text[i])
			i++
		}
	}
	return c.String(), b.String(), nil
}

func (s *luaSource) findCalls() (problems []string) {
	const prefix = "redis.call("
	for from := 0; ; {
		i := strings.Index(s.bare[from:], prefix)
		if i < 0 {
			return problems
		}
		at := from + i
		from = at + len(prefix)
		args, ok := s.splitArgs(from)
		if !ok || len(args) == 0 {
			return append(problems, fmt.Sprintf("redis.call without an end near %q",
				s.code[at:min(len(s.code), at+40)]))
		}
		name := strings.Trim(args[0], "'")
		if len(args[0]) != len(name)+2 || name != strings.ToUpper(name) {
			problems = append(problems,
				fmt.Sprintf("redis.call(%s, …): expected the command as a quoted word in upper case", args[0]))
		}
		s.calls = append(s.calls, luaCall{command: name, args: args[1:], at: at})
	}
}

// splitArgs splits a list of arguments at its commas, from an opening parenthesis on.
func (s *luaSource) splitArgs(from int) (args []string, ok bool) {
	depth, start := 0, from
	for i := from; i < len(s.bare); i++ {
		switch s.bare[i] {
		case '(', '[', '{':
			depth++
		case ')', ']', '}':
			if depth == 0 {
				return append(args, strings.TrimSpace(s.code[start:i])), true
			}
			depth--
		case ',':
			if depth == 0 {
				args = append(args, strings.TrimSpace(s.code[start:i]))
				start = i + 1
			}
		}
	}
	return nil, false
}

func (s *luaSource) findLoops() (problems []string) {
	for _, m := range luaFor.FindAllStringSubmatchIndex(s.bare, -1) {
		text := s.code[m[2]:m[3]]
		parts := luaNumeric.FindStringSubmatch(text)
		if parts == nil {
			problems = append(problems, fmt.Sprintf("loop %q: expected for i = first, last", text))
			continue
		}
		limits, _ := (&luaSource{code: parts[2] + ")", bare: parts[2] + ")"}).splitArgs(0)
		if len(limits) < 2 || len(limits) > 3 {
			problems = append(problems, fmt.Sprintf("loop %q: expected for i = first, last", text))
			continue
		}
		loop := luaLoop{variable: parts[1], first: limits[0], last: limits[1], step: "1", at: m[0]}
		if len(limits) == 3 {
			loop.step = limits[2]
		}
		s.loops = append(s.loops, loop)
	}
	return problems
}

// loopOf returns the innermost loop before the offset that has the variable.
func (s *luaSource) loopOf(variable string, at int) *luaLoop {
	for i, l := range slices.Backward(s.loops) {
		if l.variable == variable && l.at < at {
			return &s.loops[i]
		}
	}
	return nil
}
