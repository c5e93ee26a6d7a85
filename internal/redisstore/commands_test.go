package redisstore

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// oldestRedis is the oldest version of Redis that the package supports.
const oldestRedis = "6.2"

// access says how a command uses memory, as far as it matters to a full Redis.
type access uint8

const (
	reads access = iota
	frees        // writes, and a full Redis allows it
	grows        // writes, and a full Redis refuses it
)

// redisCommand is a command in use. since and the versions of options are those of Redis's own documentation.
type redisCommand struct {
	since   string
	access  access
	options map[string]string // option, or "several" for further keys, fields or values, to the version that brought it
}

// redisCommands lists every command and option that the scripts and the Go code send.
var redisCommands = map[string]redisCommand{
	"ASKING":        {"3.0.0", reads, nil},
	"AUTH":          {"1.0.0", reads, map[string]string{"several": "6.0.0"}},
	"BLPOP":         {"2.0.0", frees, nil},
	"CLUSTER":       {"3.0.0", reads, map[string]string{"SLOTS": "3.0.0"}},
	"CLIENT":        {"2.4.0", reads, map[string]string{"SETNAME": "2.6.9"}},
	"EVAL":          {"2.6.0", reads, nil},
	"EVALSHA":       {"2.6.0", reads, nil},
	"EXISTS":        {"1.0.0", reads, map[string]string{"several": "3.0.3"}},
	"EXPIRE":        {"1.0.0", frees, nil},
	"GET":           {"1.0.0", reads, nil},
	"HDEL":          {"2.0.0", frees, map[string]string{"several": "2.4.0"}},
	"HEXISTS":       {"2.0.0", reads, nil},
	"HSTRLEN":       {"3.2.0", reads, nil},
	"HGET":          {"2.0.0", reads, nil},
	"HINCRBY":       {"2.0.0", grows, nil},
	"HKEYS":         {"2.0.0", reads, nil},
	"HLEN":          {"2.0.0", reads, nil},
	"HMGET":         {"2.0.0", reads, nil},
	"HRANDFIELD":    {"6.2.0", reads, nil},
	"HSCAN":         {"2.8.0", reads, map[string]string{"COUNT": "2.8.0"}},
	"HSET":          {"2.0.0", grows, map[string]string{"several": "4.0.0"}},
	"INFO":          {"1.0.0", reads, nil},
	"ROLE":          {"2.8.12", reads, nil},
	"LINDEX":        {"1.0.0", reads, nil},
	"LLEN":          {"1.0.0", reads, nil},
	"LPOP":          {"1.0.0", frees, map[string]string{"several": "6.2.0"}},
	"LPUSH":         {"1.0.0", grows, nil},
	"RPOP":          {"1.0.0", frees, nil},
	"LREM":          {"1.0.0", frees, nil},
	"HGETALL":       {"2.0.0", reads, nil},
	"LRANGE":        {"1.0.0", reads, nil},
	"LSET":          {"1.0.0", grows, nil},
	"LTRIM":         {"1.0.0", frees, nil},
	"MEMORY":        {"4.0.0", reads, map[string]string{"USAGE": "4.0.0", "SAMPLES": "4.0.0"}},
	"PEXPIRE":       {"2.6.0", frees, nil},
	"PTTL":          {"2.6.0", reads, nil},
	"PING":          {"1.0.0", reads, nil},
	"PUBLISH":       {"2.0.0", reads, nil},
	"RPUSH":         {"1.0.0", grows, map[string]string{"several": "2.4.0"}},
	"SADD":          {"1.0.0", grows, nil},
	"SET":           {"1.0.0", grows, map[string]string{"PX": "2.6.12"}},
	"SELECT":        {"1.0.0", reads, nil},
	"SENTINEL":      {"2.8.4", reads, map[string]string{"MASTER": "2.8.4"}},
	"SISMEMBER":     {"1.0.0", reads, nil},
	"SMEMBERS":      {"1.0.0", reads, nil},
	"SSCAN":         {"2.8.0", reads, map[string]string{"COUNT": "2.8.0"}},
	"SREM":          {"1.0.0", frees, nil},
	"SUBSCRIBE":     {"2.0.0", reads, nil},
	"TIME":          {"2.6.0", reads, nil},
	"TYPE":          {"1.0.0", reads, nil},
	"UNSUBSCRIBE":   {"2.0.0", reads, nil},
	"UNLINK":        {"4.0.0", frees, map[string]string{"several": "4.0.0"}},
	"WAIT":          {"3.0.0", reads, nil},
	"ZADD":          {"1.2.0", grows, map[string]string{"several": "2.4.0"}},
	"ZCARD":         {"1.2.0", reads, nil},
	"ZCOUNT":        {"2.0.0", reads, nil},
	"ZRANGE":        {"1.2.0", reads, map[string]string{"WITHSCORES": "1.2.0"}},
	"ZRANGEBYSCORE": {"1.0.5", reads, map[string]string{"LIMIT": "1.0.5", "WITHSCORES": "1.0.5"}},
	"ZSCORE":        {"1.2.0", reads, nil},
	"ZMSCORE":       {"6.2.0", reads, nil},
	"ZREM":          {"1.2.0", frees, map[string]string{"several": "2.4.0"}},
}

// plainArgs is the number of arguments of a command in its oldest form; further ones are more keys, fields or values.
var plainArgs = map[string]int{
	"AUTH": 1, "EXISTS": 1, "HDEL": 2, "HSET": 3, "LPOP": 1, "LPUSH": 2, "RPUSH": 2,
	"SADD": 2, "SREM": 2, "UNLINK": 1, "ZADD": 3, "ZREM": 2,
}

// optionWord matches options. Numbers, ranges such as -inf and names of fields do not match.
var optionWord = regexp.MustCompile(`^[A-Z]{2,}$`)

// keyArgs returns those arguments of a command that are keys.
func keyArgs(c luaCall) []string {
	switch c.command {
	case "TIME", "PUBLISH":
		return nil
	case "EXISTS", "UNLINK":
		return c.args
	default:
		return c.args[:min(len(c.args), 1)]
	}
}

// sent is a command as the code sends it.
type sent struct {
	where   string
	command string
	args    int
	options []string // in quotes, in upper case
	spread  bool     // the last argument stands for any number
}

// checkSent compares a command with the list.
func checkSent(c sent, used map[string]bool) (problems []string) {
	cmd, ok := redisCommands[c.command]
	if !ok {
		return []string{fmt.Sprintf("%s: %s is not in the list: add it with the version of Redis that brought it",
			c.where, c.command)}
	}
	used[c.command] = true
	if !atMost(cmd.since, oldestRedis) {
		problems = append(problems,
			fmt.Sprintf("%s: %s came with Redis %s, expected %s or older", c.where, c.command, cmd.since, oldestRedis))
	}
	options := slices.Clone(c.options)
	if plain, ok := plainArgs[c.command]; ok && (c.args > plain || c.spread) {
		options = append(options, "several")
	}
	for _, o := range options {
		since, ok := cmd.options[o]
		used[c.command+" "+o] = true
		if !ok {
			problems = append(problems,
				fmt.Sprintf("%s: option %s of %s is not in the list: add it with the version of Redis that brought it",
					c.where, o, c.command))
		} else if !atMost(since, oldestRedis) {
			problems = append(problems, fmt.Sprintf("%s: option %s of %s came with Redis %s, expected %s or older",
				c.where, o, c.command, since, oldestRedis))
		}
	}
	return problems
}

// atMost compares versions by the numbers that both have.
func atMost(version, limit string) bool {
	v, l := strings.Split(version, "."), strings.Split(limit, ".")
	for i := range min(len(v), len(l)) {
		a, _ := strconv.Atoi(v[i])
		b, _ := strconv.Atoi(l[i])
		if a != b {
			return a < b
		}
	}
	return true
}

// sentByLua lists the commands of a script.
func sentByLua(s *luaSource) (list []sent) {
	for _, c := range s.calls {
		x := sent{where: "lua/" + s.file, command: c.command, args: len(c.args)}
		for i, arg := range c.args {
			if word := strings.Trim(arg, "'"); i > 0 && len(arg) == len(word)+2 && optionWord.MatchString(word) {
				x.options = append(x.options, word)
			}
			x.spread = x.spread || strings.HasPrefix(arg, "unpack(")
		}
		list = append(list, x)
	}
	return list
}

// senders are the names of Go functions and methods that send a command given as a string.
var senders = []string{"do", "read", "Read", "call", "Do", "DoContext", "DoWithTimeout", "Send", "send"}

// sentByDial are the commands that redigo sends for dial options.
var sentByDial = map[string]sent{
	"DialClientName": {command: "CLIENT", options: []string{"SETNAME"}},
	"DialDatabase":   {command: "SELECT", args: 1},
	"DialPassword":   {command: "AUTH", args: 1},
	"DialUsername":   {command: "AUTH", args: 2},
}

// sentByGo lists the commands in the calls of a Go file: their name is the first string given to a function that sends.
func sentByGo(name string, text any) (list []sent, err error) {
	files := token.NewFileSet()
	file, err := parser.ParseFile(files, name, text, parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	ast.Inspect(file, func(n ast.Node) bool {
		call, ok := n.(*ast.CallExpr)
		if !ok {
			return true
		}
		var function string
		switch f := call.Fun.(type) {
		case *ast.Ident:
			function = f.Name
		case *ast.SelectorExpr:
			function = f.Sel.Name
		}
		where := files.Position(call.Pos()).String()
		if x, ok := sentByDial[function]; ok {
			x.where = where
			list = append(list, x)
		}
		if !slices.Contains(senders, function) {
			return true
		}
		x := sent{where: where}
		for _, arg := range call.Args {
			lit, ok := arg.(*ast.BasicLit)
			if x.command != "" {
				x.args++
			}
			if !ok || lit.Kind != token.STRING {
				continue
			}
			word, err := strconv.Unquote(lit.Value)
			switch {
			case err != nil:
			case x.command == "":
				x.command = word
			case optionWord.MatchString(word):
				x.options = append(x.options, word)
			}
		}
		if x.command != "" {
			x.spread = call.Ellipsis.IsValid()
			list = append(list, x)
		}
		return true
	})
	return list, nil
}

// goFiles lists the Go files of this module that are part of programs.
func goFiles(t *testing.T) (files []string) {
	t.Helper()
	err := filepath.WalkDir("../..", func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && path != "../.." {
			_, err := os.Stat(filepath.Join(path, "go.mod"))
			// The dashboard has functions of these names that ask package inspect.
			if err == nil || strings.HasPrefix(d.Name(), ".") ||
				slices.Contains([]string{"redistest", "faultnet", "web"}, d.Name()) {
				return filepath.SkipDir
			}
		}
		if strings.HasSuffix(path, ".go") && !strings.HasSuffix(path, "_test.go") {
			files = append(files, path)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

func TestCommandsOfOldestRedis(t *testing.T) {
	used := map[string]bool{"EVAL": true} // sent as a variable by script.run
	for name, row := range Scripts {
		s, problems := parseLua(name, row.Source)
		for _, c := range sentByLua(s) {
			problems = append(problems, checkSent(c, used)...)
		}
		for _, p := range problems {
			t.Errorf("%s: %s", s.file, p)
		}
	}
	for _, file := range goFiles(t) {
		list, err := sentByGo(file, nil)
		if err != nil {
			t.Error(err)
		}
		for _, c := range list {
			for _, p := range checkSent(c, used) {
				t.Error(p)
			}
		}
	}
	for name, cmd := range redisCommands {
		if !used[name] {
			t.Errorf("%s is in the list, but nothing sends it: remove it", name)
		}
		for option := range cmd.options {
			if !used[name+" "+option] {
				t.Errorf("option %s of %s is in the list, but nothing uses it: remove it", option, name)
			}
		}
	}
}

// TestCommandsCanFail checks that the test finds newer commands and options, in scripts and in Go.
func TestCommandsCanFail(t *testing.T) {
	for _, c := range []struct{ lua, golang, want string }{
		{lua: "redis.call('LMPOP', 1, KEYS[1], 'LEFT')", want: "LMPOP is not in the list"},
		{lua: "redis.call('EXPIRE', KEYS[1], 1, 'NX')", want: "option NX of EXPIRE is not in the list"},
		{lua: "redis.call('SADD', KEYS[1], 'a', 'b')", want: "option several of SADD is not in the list"},
		{lua: "redis.call('LPUSH', KEYS[1], unpack(ARGV))", want: "option several of LPUSH is not in the list"},
		{lua: "redis.call('SET', KEYS[1], 'x', 'PX', ARGV[1])"},
		{golang: `conn.Do("LMPOP", 1, key, "LEFT")`, want: "LMPOP is not in the list"},
		{golang: `do(ctx, conn, 0, "SET", key, 1, "GET")`, want: "option GET of SET is not in the list"},
		{golang: `s.read(ctx, "HRANDFIELD", hash, n)`},
		{
			golang: `s.read(ctx, "HRANDFIELD", hash, n, "WITHVALUES")`,
			want:   "option WITHVALUES of HRANDFIELD is not in the list",
		},
		{golang: `redis.DoContext(conn, ctx, "RPUSH", args...)`},
		{golang: `log("LMPOP")`},
	} {
		var list []sent
		if c.lua != "" {
			s, _ := parseLua("x", c.lua+"\n")
			list = sentByLua(s)
		} else {
			var err error
			if list, err = sentByGo("x.go", "package x\nfunc f() {\n"+c.golang+"\n}"); err != nil {
				t.Fatal(err)
			}
		}
		var problems []string
		for _, x := range list {
			problems = append(problems, checkSent(x, map[string]bool{})...)
		}
		if got := strings.Join(problems, "\n"); c.want == "" && got != "" || !strings.Contains(got, c.want) {
			t.Errorf("%s%s: expected %q, found %q", c.lua, c.golang, c.want, got)
		}
	}
	// A command that is in the list, but too new.
	redisCommands["LMPOP"] = redisCommand{since: "7.0.0"}
	defer delete(redisCommands, "LMPOP")
	if got := checkSent(sent{command: "LMPOP"}, map[string]bool{}); len(got) != 1 ||
		!strings.Contains(got[0], "came with Redis 7.0.0") {
		t.Errorf("a command of Redis 7: found %q", got)
	}
	for _, c := range []struct {
		version, limit string
		want           bool
	}{
		{"6.2.0", "6.2", true},
		{"6.10", "6.2", false},
		{"2.6.12", "6.2", true},
		{"7.0.0", "6.2", false},
		{"5", "6.2", true},
	} {
		if got := atMost(c.version, c.limit); got != c.want {
			t.Errorf("atMost(%s, %s) = %v", c.version, c.limit, got)
		}
	}
}
