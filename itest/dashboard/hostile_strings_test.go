//go:build unix

package dashboard_test

import (
	"fmt"
	"strings"
)

// Words that no page has of its own: what stands before or behind them in a text from outside must not become part of
// a page's structure.
const hostileMark = "xss7"

// hostilePayloads would do something if a page wrote them where their authors hope.
var hostilePayloads = []string{
	`<script>alert("xss7")</script>`, `<SCRIPT SRC=//xss7.example/x.js></SCRIPT>`, `</script><script>xss7()</script>`,
	`<img src=x onerror=xss7()>`, `<img/src=xss7/onerror=alert(1)>`, `<svg onload=xss7()>`, `<svg/onload=xss7()//`,
	`<svg><script href="data:,xss7()"/></svg>`, `<svg><animate onbegin=xss7() attributeName=x></svg>`,
	`<math><mtext></form><form><mglyph><style></math><img src=xss7 onerror=alert(1)>`,
	`<iframe src=javascript:xss7()>`, `<iframe srcdoc="<script>xss7()</script>">`, `<object data=xss7.swf>`,
	`<embed src=xss7>`, `<base href=//xss7.example/>`, `<link rel=stylesheet href=//xss7.example>`,
	`<meta http-equiv=refresh content="0;url=//xss7.example">`, `<style>@import "//xss7.example"</style>`,
	`<a href="javascript:xss7()">x</a>`, `<form action=//xss7.example><input>`,
	`<button formaction=javascript:xss7()>x</button>`, `<details open ontoggle=xss7()>`,
	`<input autofocus onfocus=xss7()>`, `<template><b xss7></template>`,
	`<textarea><b xss7></textarea><img src=xss7>`, `</title><b xss7>`, `</textarea><b xss7>`, `<!--><b xss7>-->`,
	`--><b xss7>`, `<![CDATA[<b xss7>]]>`, `<?xss7 ?>`, `<!DOCTYPE xss7>`, `</main><main xss7>`,
	`</div></div></main><h1 xss7>`, `</table><b xss7>`, `<plaintext xss7>`, `<xmp xss7>`,
	`<noscript><p title="</noscript><b xss7>">`, `" onmouseover="xss7()`, `' onmouseover='xss7()`, `"><b xss7>`,
	`'><b xss7>`, "` onmouseover=xss7()", `" autofocus onfocus=xss7() x="`, `" style="x:xss7`,
	`" href="javascript:xss7()`, `"/><img src=xss7>`, ` onclick=xss7() `, `x" xss7 data-confirm="`, `>xss7<`,
	`javascript:xss7()`, `JaVaScRiPt:xss7()`, "java\tscript:xss7()", "java\nscript:xss7()", `javascript&colon;xss7()`,
	`vbscript:xss7()`, `data:text/html,<script>xss7()</script>`, `//xss7.example`, `https://xss7.example/`,
	`\\xss7.example`, `../../xss7`, `?x=xss7&y=#z`, `{{xss7}}`, `{{.CSRF}} xss7`, `{{template "layout" .}} xss7`,
	`${xss7()}`, `#{xss7}`, `<%= xss7 %>`, `{% xss7 %}`, `[[xss7]]`, `$1$& xss7`, `&lt;b xss7&gt;`,
	`&#60;b xss7&#62;`, `&#x3c;b xss7&#x3e;`, `&amp;lt;b xss7&amp;gt;`, `&ltb xss7&gt`, `&NewLine;xss7`,
	`&quot; xss7=&quot;`, `+ADw-script+AD4-xss7()+ADw-/script+AD4-`, "\xf0\x80\x80\xbcb xss7>",
	"\xc0\xbcb xss7\xc0\xbe", "%3Cb%20xss7%3E", `\u003cb xss7\u003e`, "xss7\x00<b xss7>", "<b\x00 xss7>",
	"<\x00b xss7>", "xss7\x07\x08\x0b\x0c\x1f\x7f", "xss7\r\nSet-Cookie: a=b\r\n\r\n<b xss7>",
	"data: xss7\n\nevent: main\ndata: \"<b xss7>\"\n\n", "xss7\u2028<b xss7>\u2029",
	"\x1b[31mxss7\x1b]0;title\x07\x1b[2J", "\x9b31mxss7\u009b", "xss7\u202egnp.exe", "\u2066xss7\u2069\u2067\u2068",
	"\u200e\u200f\u061cxss7", "\ufeffxss7", "\u200bxss7\u200d\u2060", "xss7\xff\xfe\x80", "xss7\xed\xa0\x80",
	"\U000e0041xss7\U000e007f", "xss7" + "\u0301\u0302\u0303\u0304\u0305", "\ufff9xss7\ufffa\ufffb",
	"xss7 \t\v\u00a0\u3000 x",
}

// hostileStrings returns the payloads as they are, and as parts of other texts.
func hostileStrings() (all []string) {
	all = append(all, hostilePayloads...)
	for i, p := range hostilePayloads {
		all = append(all, fmt.Sprintf(`mail-%d" '>`, i)+p, p+strings.Repeat(`"'><b xss7>`, 3))
	}
	// Of a length that pages must cut.
	return append(all, strings.Repeat(`<b xss7>`, 8<<10), strings.Repeat("\u202e", 20_000)+"xss7",
		strings.Repeat("\x1b", 20_000), strings.Repeat("\xff", 60_000), strings.Repeat("<", 60_000),
		strings.Repeat(`"`, 60_000), strings.Repeat("xss7 ", 12_000))
}
