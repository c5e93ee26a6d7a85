import re,subprocess,sys,os
root=os.getcwd()
E='internal/engine/'
DEL=lambda m:''
def rep(a,b):
    return lambda m: re.sub(a,b,m.group(0),flags=re.I)
# name, file(s) edits: (file, literal text (case-insensitive), function)
S=[
('batch-of-other-ending',[(E+'cancel.go','	f.lane.reopen([]*claim{e.claim})\n',DEL)]),
('connected-on-the-last-queue',[(E+'control.go','s.Connected = s.Connected && l.fresh(',rep(r's\.Connected && ',''))]),
('inner-task-hides-outer',[(E+'stepper.go','	around := s.w.exec.slots[0].Swap(c) // tasks may run within tasks\n',rep(r'around := (s\.w\.exec\.slots\[0\])\.Swap\(c\).*',r'\1.Store(c)')),(E+'stepper.go','e.slots[0].Store(around)',rep('around','nil'))]),
('kept-shorter',[(E+'completed.go','	e.wait, e.info = wire.Milliseconds(max(x.KeepResult, x.Retention)), info.Encode()\n',lambda m:'	keep := x.KeepResult\n	if keep == 0 {\n		keep = x.Retention\n	}\n'+re.sub(r'max\(x\.KeepResult, x\.Retention\)','keep',m.group(0)))]),
('large-due-kept-for-default',[(E+'worker.go','g.mover.hooks, g.mover.archiveKeep = &w.hooks, w.cfg.ArchiveFor',rep(r', g\.mover\.archiveKeep = (&w\.hooks), w\.cfg\.ArchiveFor',r' = \1'))]),
('listeners-cut-off',[(E+'config.go','return max(c.CancelGrace, time.Second)',lambda m:'return max(c.CancelGrace, 0)')]),
('lost-claims-run-on',[(E+'lane.go','c.cancel(ErrLost)',lambda m:'_ = '+m.group(0)[:8])]),
('max-tasks-one-more',[(E+'limits.go','w.cfg.MaxTasks > 0, w.cfg.MaxTasks\n',rep(r'\n','+1\n'))]),
('new-functions-published-late',[(E+'worker.go','	w.moveNow()\n	for _, g := range w.groups {\n		g.heartbeat.now()\n	}\n',lambda m:m.group(0).split('\n')[0]+'\n')]),
('order-outlives-its-pause',[(E+'lane_control.go','if last == orderPause {',rep('Pause','Quiet'))]),
('parked-dropped',[(E+'execute.go','f.add(w.park(c, parkedUnknown, now))',lambda m:'f.'+('Ack' if 'Add' in m.group(0) and re.search(r'func \(f \*[fF]inisher\) Ack',open(E+'finish.go').read()) else ('Ack' if re.search(r'func \(f \*[fF]inisher\) Ack',open(E+'finish.go').read()) else 'ack'))+'([]*Claim{c}, 0)')]),
('pause-keeps-what-has-not-started',[(E+'worker.go','	if !w.mayClaim() {\n		w.giveBack(w.exec.takeBack())\n',lambda m:m.group(0).split('\n')[0]+'\n'),(E+'control.go','	w.exec.hold(true)\n	w.giveBack(w.exec.takeBack())\n',lambda m:m.group(0).split('\n')[0]+'\n')]),
('pause-meanwhile-not-heeded',[(E+'execute.go','	if l.queuePaused() {\n		w.giveBack(w.exec.takeBackOf(l)) // it was not when we looked\n	}\n',DEL)]),
('python-queue-unsettled-is-plain',[(E+'execute.go','form == "" && !w.cfg.Legacy',rep('!',''))]),
('settings-not-checked',[(E+'start.go','return true, unfit',lambda m:'return true, ' if 0 else '_ = unfit\n	return true, nil')]),
('stop-keeps-what-has-not-started',[(E+'life.go','	w.holdBack() // at once: the loops may have to wait for Redis\n',lambda m:'	w.'+re.search(r'w\.(exec)\.',open(E+'life.go').read(),re.I).group(1)+'.'+('Hold' if 'func (e *executors) Hold' in open(E+'executors.go').read() or 'func (e *Executors) Hold' in open(E+'executors.go').read() else 'hold')+'(true)\n'),(E+'life.go','	w.giveBack(w.exec.takeBack())\n',DEL)]),
('stop-not-noted',[(E+'life.go','if reason != StopStuck {',rep('!=','=='))]),
('stop-spends-a-retry',[(E+'judge.go','errors.Is(context.Cause(j.w.tasks), ErrShutdown)',rep('ErrShutdown','ErrLost'))]),
('stopped-event-without-error',[(E+'life.go','Err: w.because(reason, err)})',lambda m:'Err: err})')]),
('stopped-worker-connected',[(E+'control.go','s.Connected = s.Phase != phaseStopped',lambda m:'s.Connected = true')]),
('strangers-keep-registration',[(E+'stop.go','	_, err = l.store.Unregister(ctx, w.uid)\n	return err\n',lambda m:'	return nil\n')]),
('suspect-alone-beside-others',[(E+'execute.go','if suspects && w.inHand() == 1 {',lambda m:'if suspects && len(runnable) == 1 {')]),
('suspects-among-others',[(E+'execute.go','>= setApart && (',lambda m:'>= 100*'+m.group(0)[3:])]),
('swept-archive-unbounded',[(E+'worker.go','ArchiveMax: w.cfg.ArchiveMax, ArchiveFor: w.cfg.ArchiveFor,\n			Health',rep(r'ArchiveMax: w\.cfg\.ArchiveMax, ArchiveFor: w\.cfg\.ArchiveFor','ArchiveMax: 10_000, ArchiveFor: 90 * 24 * time.Hour'))]),
('tasks-kept-though-suspect-noted',[(E+'execute.go','	if !w.unmark(ctx) {\n		w.giveBack(runnable)\n',lambda m:m.group(0).split('\n')[0]+'\n')]),
]
only=sys.argv[1:]
for name,edits in S:
    if only and name not in only: continue
    p=f'itest/planted/{name}.patch'
    head=''.join(l for l in open(p) if l.startswith('#'))
    files=sorted({f for f,_,_ in edits})
    texts={f:open(f).read() for f in files}; orig=dict(texts)
    ok=True
    for f,lit,fn in edits:
        pat=re.escape(lit)
        if 'uid' in lit: pat=pat.replace('uid','u?id')
        n=len(re.findall(pat,texts[f],flags=re.I))
        if n!=1:
            print('PROBLEM',name,f,n,lit.strip()[:60]); ok=False; continue
        texts[f]=re.sub(pat,fn,texts[f],count=1,flags=re.I)
    if not ok: continue
    out=head
    for f in files:
        open('/tmp/a.go','w').write(orig[f]); open('/tmp/b.go','w').write(texts[f])
        d=subprocess.run(['diff','-u','/tmp/a.go','/tmp/b.go'],capture_output=True,text=True).stdout.split('\n')
        out+=f'diff --git a/{f} b/{f}\n--- a/{f}\n+++ b/{f}\n'+'\n'.join(d[2:])
    open(p,'w').write(out)
    r=subprocess.run(['git','apply','--check','--recount','-C1',p],capture_output=True,text=True)
    if r.returncode: print('NOT APPLY',name,r.stderr)
    # compile
    for f in files: open(f,'w').write(texts[f])
    c=subprocess.run(['go','build','./internal/engine'],capture_output=True,text=True)
    for f in files: open(f,'w').write(orig[f])
    if c.returncode: print('COMPILE',name,c.stderr[:300])
