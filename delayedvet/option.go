package delayedvet

import (
	"fmt"
	"go/ast"
	"go/constant"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// option is an option of a queue or of a function.
type option struct {
	name string
	made *ast.CallExpr // of the function that has made it
	expr ast.Expr      // as it is given
}

// options are options in their order.
type options struct {
	all     []option
	unknown bool // there may be others
}

// last returns the call that has made the last option of a name; nil if there is none.
func (o options) last(name string) *ast.CallExpr {
	for _, one := range slices.Backward(o.all) {
		if one.name == name {
			return one.made
		}
	}
	return nil
}

// optionsIn reads the options among the arguments of a call, from index first on.
func (c *checker) optionsIn(call *ast.CallExpr, first int) (o options) {
	args, known := c.arguments(call, first)
	o.unknown = !known
	return o.read(c, args)
}

// read adds the options of expressions to those of o.
func (o options) read(c *checker, exprs []ast.Expr) options {
	for _, e := range exprs {
		made, name := c.madeBy(e)
		name, ours := strings.CutPrefix(name, root+".")
		if !ours {
			o.unknown = true
			continue
		}
		o.all = append(o.all, option{name, made, e})
	}
	return o
}

// optionsOf reads the options that With has given to a queue.
func (c *checker) optionsOf(queue ast.Expr) (o options) {
	switch call, name := c.madeBy(queue); name {
	case ofQueue("With"):
		o = c.optionsOf(receiver(call))
		own := c.optionsIn(call, 0)
		o.all = append(o.all, own.all...)
		o.unknown = o.unknown || own.unknown
	case inRoot("NewQueue"), inRoot("OpenQueue"):
	default:
		o.unknown = true
	}
	return o
}

// checkWith checks the options of one call of With, also against those before it.
func (c *checker) checkWith(call *ast.CallExpr) {
	own := c.optionsIn(call, 0)
	all := c.optionsOf(call)
	later := func() bool {
		in := all.last("In")
		return all.last("At") != nil || all.last("Debounce") != nil || in != nil && c.isPositive(in)
	}
	switch {
	case all.last("Front") != nil && later() && own.any("Front", "In", "At", "Debounce"):
		c.reportf(call, call.Args[0], "Front with In, At or Debounce: a scheduled task joins the end of its queue "+
			"when it is due; leave one of them out")
	case all.last("Debounce") != nil && (all.last("At") != nil || all.last("In") != nil) &&
		own.any("In", "At", "Debounce"):
		c.reportf(call, call.Args[0], "Debounce with In or At: Debounce says when the task runs; leave one of them out")
	}
}

func (o options) any(names ...string) bool {
	return slices.ContainsFunc(o.all, func(one option) bool { return slices.Contains(names, one.name) })
}

// isPositive reports whether an option of a duration is certainly one of more than nothing.
func (c *checker) isPositive(option *ast.CallExpr) bool {
	d, known := c.constantInt(option, 0)
	return known && d >= int64(time.Millisecond)
}

// constantInt returns an argument of a call that is a constant integer.
func (c *checker) constantInt(call *ast.CallExpr, i int) (n int64, known bool) {
	if len(call.Args) <= i {
		return 0, false
	}
	return integer(c.pass.TypesInfo.Types[call.Args[i]].Value)
}

func (c *checker) constantText(e ast.Expr) (s string, known bool) {
	v := c.pass.TypesInfo.Types[e].Value
	if v == nil || v.Kind() != constant.String {
		return "", false
	}
	return constant.StringVal(v), true
}

// maxPath bounds a path, in bytes.
const maxPath = 512

// pathFault returns why a path cannot stand for a Go function in a task; "" if it can.
func pathFault(path string) string {
	switch {
	case path == "":
		return "an empty one"
	case len(path) > maxPath:
		return fmt.Sprintf("one of %d bytes, more than %d", len(path), maxPath)
	case strings.Contains(path, ":"):
		return strconv.Quote(path) + " with a colon, which marks Python functions"
	case !utf8.ValidString(path):
		return strconv.Quote(path) + ", which is not UTF-8"
	case strings.ContainsFunc(path, func(r rune) bool { return !unicode.IsPrint(r) }):
		return strconv.Quote(path) + ", with characters that do not print"
	}
	return ""
}

// refusedByEntries are the options that a periodic entry cannot have.
var refusedByEntries = map[string]string{
	"In":         "the entry says when its tasks run: leave it out, or use Jitter",
	"At":         "the entry says when its tasks run: leave it out, or use Jitter",
	"Debounce":   "the entry says when its tasks run: leave it out, or use Jitter",
	"Deadline":   "one moment cannot hold for all ticks: use TTL, Timeout or MaxRetry",
	"RetryUntil": "one moment cannot hold for all ticks: use TTL, Timeout or MaxRetry",
	"TaskID":     "each tick has an id of its own, name@tick: leave it out",
	"Front":      "ticks join the end of the queue: leave it out",
	"Group":      "ticks are not gathered: leave it out",
	"Unique":     "what keeps runs of an entry apart is its Overlap: leave it out",
	"UniqueKey":  "what keeps runs of an entry apart is its Overlap: leave it out",
	"UntilStart": "what keeps runs of an entry apart is its Overlap: leave it out",
	"OnConflict": "what keeps runs of an entry apart is its Overlap: leave it out",
}

// checkEntry checks the options of a periodic entry; its task is a Call, which is checked where it stands.
func (c *checker) checkEntry(lit *ast.CompositeLit) {
	if list := fieldOf(lit, "Options"); list != nil {
		elems, _ := c.elements(list)
		for _, o := range (options{}).read(c, elems).all {
			d, known := c.constantInt(o.made, 0)
			if why := refusedByEntries[o.name]; why != "" && (o.name != "In" || !known || d > 0) {
				c.reportf(lit, o.expr, "periodic entry: expected options that hold for every tick, found %s: %s",
					o.name, why)
			}
		}
	}
	task := fieldOf(lit, "Task")
	if task == nil {
		return
	}
	var fn ast.Expr
	switch call, name := c.madeBy(task); {
	case name == inRoot("Call") && len(call.Args) > 0:
		fn = call.Args[0]
	case name == ofTyped("Call"):
		fn = receiver(call)
	}
	if fn == nil {
		return
	}
	if f, why := c.functionOf(fn); why == nil && f != nil && f.Unique {
		c.reportf(lit, task, "periodic entry: expected a task without a lock, found one of %s, which Func makes "+
			"unique; what keeps runs of an entry apart is its Overlap: leave Unique out", f.Path)
	}
}
