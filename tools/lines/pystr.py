import re,sys,ast
W=120
for f in sys.argv[1:]:
    s=open(f,encoding='utf8').read(); out=[]
    for l in s.split('\n'):
        while len(l)>W:
            m=re.match(r'''^(\s+)(f?)(['"])(.*)\3([,)]*)$''',l)
            if not m or m.group(3) in m.group(4).replace('\\'+m.group(3),''): break
            ind,fl,q,body,tail=m.groups()
            cut=-1; depth=0
            for i,c in enumerate(body):
                if c=='{': depth+=1
                if c=='}': depth-=1
                if c==' ' and depth==0 and len(ind+fl+q)+i+2<=W: cut=i+1
            if cut<20: break
            a,b=body[:cut],body[cut:]
            out.append(ind+(fl if '{' in a else '')+q+a+q)
            l=ind+(fl if '{' in b else '')+q+b+q+tail
        out.append(l)
    n='\n'.join(out)
    if n!=s: ast.parse(n); open(f,'w',encoding='utf8').write(n)
