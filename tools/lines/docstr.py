import ast, sys, textwrap, re
W=120
for f in sys.argv[1:]:
    src=open(f,encoding='utf8').read()
    tree=ast.parse(src); lines=src.split('\n')
    todo=[]
    for n in ast.walk(tree):
        if isinstance(n,(ast.Module,ast.ClassDef,ast.FunctionDef,ast.AsyncFunctionDef)) and n.body and isinstance(n.body[0],ast.Expr) and isinstance(n.body[0].value,ast.Constant) and isinstance(n.body[0].value.value,str):
            e=n.body[0]
            a,b=e.lineno-1,e.end_lineno-1
            if any(len(l)>W for l in lines[a:b+1]): todo.append((a,b,e.col_offset))
    for a,b,col in sorted(todo,reverse=True):
        ind=' '*col
        text='\n'.join(lines[a:b+1])
        m=re.match(r'^\s*(r?""")(.*?)"""(.*)$',text,re.S)
        if not m: print('skip',f,a+1); continue
        q,body,tail=m.groups()
        paras=re.split(r'\n\s*\n',body)
        first=' '.join(paras[0].split())
        rest=paras[1:]
        # split first paragraph at its first sentence
        s=re.match(r'(.+?[.?!])\s+(?=[A-Z`_a-z"\'(])(.*)$',first)
        out=[]
        if len(ind+q+first)<=W - (3 if not rest else 0):
            head=first
        elif s and len(ind+q+s.group(1))<=W and s.group(1).count('(')==s.group(1).count(')'):
            head=s.group(1); rest=[s.group(2)]+rest
        else:
            head='\n'.join(textwrap.wrap(first,W-col-7,break_long_words=False,break_on_hyphens=False))
            head=head.replace('\n','\n'+ind)
        new=ind+q+head
        for p in rest:
            ls=p.split('\n')
            if any(len(l)>W for l in ls) or p is rest[0] and '\n' not in p:
                flat=' '.join(p.split())
                ls=textwrap.wrap(flat,W-col,break_long_words=False,break_on_hyphens=False)
                ls=[ind+l for l in ls]
            else:
                ls=[l if l.startswith(ind) or not l.strip() else ind+l.strip() for l in ls]
            new+='\n\n'+'\n'.join(l.rstrip() for l in ls)
        new=new.rstrip()
        multi='\n' in new
        new+= ('\n'+ind+'"""' if multi and rest else '"""')+tail
        lines[a:b+1]=new.split('\n')
    new='\n'.join(lines)
    if new!=src:
        old_t=re.sub(r'\s+','',src); new_t=re.sub(r'\s+','',new)
        if old_t!=new_t: print('CHANGED',f); continue
        ast.parse(new)
        open(f,'w',encoding='utf8').write(new)
