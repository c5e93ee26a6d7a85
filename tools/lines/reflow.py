"""Rewraps comment paragraphs (Go, Lua, Python) and Markdown paragraphs that have a line of more than 120 columns (tabs count 4).
usage: reflow.py [-n] files...   prints what is still wide"""
import re, sys, textwrap
W = 120
def width(s): return len(s.expandtabs(4))
def wrap(words, first, rest):
    """words to lines of at most W columns; first and rest are the prefixes."""
    lines, cur = [], first
    fresh = True
    for w in words:
        add = w if fresh else ' ' + w
        if not fresh and width(cur + add) > W:
            lines.append(cur.rstrip()); cur = rest + w
        else:
            cur += add
        fresh = False
    lines.append(cur.rstrip())
    return lines

def para_breaks(body):
    """Splits the comment texts (after the marker) in paragraphs: lists of (start, end, kind, prefixlen)."""
LIST = re.compile(r'^(\s*)([-*+]|\d+[.)])(\s+)')

def flow_text(lines, pre, md=False):
    """lines: texts without the comment marker. Returns new lines without the marker; pre is the width of the marker."""
    out, i, n = [], 0, len(lines)
    fence = False
    while i < n:
        l = lines[i]
        s = l.strip()
        if s.startswith('```') or s.startswith('~~~'):
            fence = not fence; out.append(l); i += 1; continue
        if fence or not s or s.startswith('|') or s.startswith('#') or s.startswith('<!--') or (md and (s.startswith('>') or s.startswith('<'))) or re.match(r'^\[[^\]]+\]: ', s):
            out.append(l); i += 1; continue
        m = LIST.match(l)
        indent = len(l) - len(l.lstrip())
        if not md and (l.startswith('\t') or (l.startswith('    ') and not m)):  # preformatted
            out.append(l); i += 1; continue
        if md and l.startswith('    ') and not m and not (out and out[-1].strip()) :
            # may be a list continuation paragraph: keep its indentation
            pass
        first = m.group(0) if m else l[:indent]
        if m:
            rest = ' ' * len(first)
        else:
            rest = l[:indent]
        j = i + 1
        while j < n:
            t = lines[j]; ts = t.strip()
            if not ts or ts.startswith('|') or ts.startswith('#') or ts.startswith('```') or ts.startswith('<!--') or LIST.match(t): break
            if not md and t.startswith('\t'): break
            ti = len(t) - len(t.lstrip())
            if m:
                if ti == 0 and not md: break
                if ti and j == i + 1: rest = ' ' * ti
            elif ti != indent: break
            if t.endswith('  ') and md: pass
            j += 1
        chunk = lines[i:j]
        if any(width(pre + x) > W for x in chunk):
            words = ' '.join(x.strip() for x in chunk)[len(m.group(0).strip()):].split() if m else ' '.join(x.strip() for x in chunk).split()
            out += [x[len(pre):] for x in wrap(words, pre + first, pre + rest)]
        else:
            out += chunk
        i = j
    return out

def comments(text, mark):
    lines = text.split('\n')
    out, i = [], 0
    pat = re.compile(r'^([ \t]*)' + re.escape(mark) + r'( ?)(.*)$')
    raw = False
    while i < len(lines):
        m = pat.match(lines[i])
        if mark == '//' and lines[i].count('`') % 2 == 1 and not (m): raw = not raw
        if raw or not m or (mark == '//' and re.match(r'^(go:|nolint|line |export )', m.group(3)) and not m.group(2)) or (mark == '#' and lines[i].startswith('#!')):
            out.append(lines[i]); i += 1; continue
        ind = m.group(1); j = i; body = []
        while j < len(lines):
            k = pat.match(lines[j])
            if not k or k.group(1) != ind or (mark == '//' and not k.group(2) and k.group(3)): break
            body.append(k.group(3) if k.group(2) or not k.group(3) else k.group(3)); j += 1
        if j == i:
            out.append(lines[i]); i += 1; continue
        if mark=='//':
            # tabs right after // were matched with group2 empty: those end the block above
            pass
        for x in flow_text(body, ind + mark + ' '):
            out.append((ind + mark + ' ' + x).rstrip())
        i = j
    return '\n'.join(out)

def main():
    dry = '-n' in sys.argv
    for f in [a for a in sys.argv[1:] if a != '-n']:
        t = open(f, encoding='utf8').read()
        if f.endswith('.go'): new = comments(t, '//')
        elif f.endswith('.lua'): continue
        elif f.endswith('.py') or f.endswith('.sh') or f.endswith('.yml'): new = comments(t, '#')
        elif f.endswith('.md'): new = '\n'.join(flow_text(t.split('\n'), '', True))
        else: continue
        if re.sub(r'[\s/#-]+', '', t) != re.sub(r'[\s/#-]+', '', new): print('TEXT CHANGED', f); continue
        if new != t and not dry: open(f, 'w', encoding='utf8').write(new)
main()
