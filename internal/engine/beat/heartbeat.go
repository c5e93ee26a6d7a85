// Package beat keeps a worker alive: a Heartbeat renews its heartbeats in Redis, registers it again when they have
// expired, and gives back claims whose replies were lost. It writes what inspectors read: functions, status and
// metrics.
package beat

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strconv"
	"time"

	"github.com/godelayed/delayed/event"
	"github.com/godelayed/delayed/internal/answer"
	"github.com/godelayed/delayed/internal/engine/events"
	"github.com/godelayed/delayed/internal/engine/exec"
	"github.com/godelayed/delayed/internal/engine/lane"
	"github.com/godelayed/delayed/internal/function"
	"github.com/godelayed/delayed/internal/loop"
	"github.com/godelayed/delayed/internal/redisstore"
	"github.com/godelayed/delayed/internal/sweep"
)

// Heartbeat keeps a worker alive on the queues of one slot. It renews the heartbeats in Redis, registers the worker
// again when they have expired, writes again what else Redis has lost of the worker, marks claims that were lost
// meanwhile, and gives back claims whose replies were lost.
type Heartbeat struct {
	lanes  []*lane.Lane
	stores []*redisstore.Store
	worker string
	life   time.Duration
	value  string
	Health *sweep.LinkHealth
	log    loop.Journal
	Events *events.Listeners
	Exec   *exec.Executors
	// announcer announces the queues again after a beat that has registered the worker: Redis may have lost all that it
	// knew.
	announcer *Announcer

	beats         int // heartbeats that Redis has answered
	registrations int // attempts to register
	// unanswered: the last registration got no answer. It must be repeated, because the answer says which claims stand.
	unanswered   map[*lane.Lane]bool
	ReportedLost map[*lane.Lane]bool // event.HeartbeatLost was emitted

	forbidden bool // this user may not find out what Redis has lost of the worker

	Functions *function.Registry // nil: publish nothing of the worker
	Status    *Status
	Published map[*lane.Lane]any    // the value of Functions.Listing that Redis has; nil: none
	Statuses  map[*lane.Lane]string // the status that Redis has; "": none
	failing   loop.Complaints       // about functions that could not be published

	poke    chan struct{}
	trouble loop.Complaints
	Link    redisstore.Link
}

// shortestBeat is the shortest timeout of a heartbeat call.
const shortestBeat = 500 * time.Millisecond

// registeredAtOnce bounds the queues on which a worker registers with calls that are sent together.
const registeredAtOnce = 200

// New returns the heartbeat of lanes that share a slot. value begins what it writes to Redis. It does not connect.
func New(
	lanes []*lane.Lane, life time.Duration, value string, health *sweep.LinkHealth, log loop.Journal,
	exec *exec.Executors, announcer *Announcer,
) *Heartbeat {
	h := &Heartbeat{
		Link: lanes[0].Store.NewLink(), lanes: lanes, worker: lanes[0].Worker, life: life,
		value: value, Health: health, log: log, Events: &events.Listeners{}, Exec: exec, announcer: announcer,
		unanswered: map[*lane.Lane]bool{}, ReportedLost: map[*lane.Lane]bool{}, poke: make(chan struct{}, 1),
		Published: map[*lane.Lane]any{}, Statuses: map[*lane.Lane]string{},
	}
	for _, l := range lanes {
		h.stores = append(h.stores, l.Store)
		l.Beat = h.poke
	}
	return h
}

// BeatNow asks for a heartbeat at once. It never blocks.
func (h *Heartbeat) BeatNow() { loop.Poke(h.poke) }

// Run renews the heartbeats until ctx ends.
func (h *Heartbeat) Run(ctx context.Context) {
	defer h.Link.HangUp()
	loop.Drain(h.poke) // Register has poked; the first heartbeat comes at once anyway
	var wait loop.Backoff
	for ctx.Err() == nil {
		next := loop.Jitter(h.life*9/40, 0.1) // at most a quarter of the life: sweepers rely on that
		err := h.Beat(ctx)
		if ctx.Err() != nil && err != nil {
			return
		}
		for _, l := range h.lanes {
			l.Unanswered.Store(err != nil)
		}
		if err != nil {
			h.log.Trouble(&h.trouble, "cannot renew the heartbeat; trying again", err)
			h.CheckExpired(err)
			next = min(wait.Next(), h.life/8)
			loop.Drain(h.poke) // otherwise claims that wait for a heartbeat would make this a busy loop
		} else {
			h.log.Relief(&h.trouble, "heartbeat renewed")
			wait.Reset()
		}
		loop.SleepOr(ctx, h.poke, next)
	}
}

// Beat renews the heartbeats once.
func (h *Heartbeat) Beat(ctx context.Context) (fault error) {
	// A short timeout: if the connection is broken, the next attempt uses another one.
	ctx, cancel := context.WithTimeout(ctx, min(max(h.life/8, shortestBeat), redisstore.CallTimeout))
	defer cancel()
	count, look := false, h.beats%lookAtLeast == 0
	var missing []*lane.Lane
	until := make([]uint64, len(h.lanes))
	for i, l := range h.lanes {
		known, _, unclear := l.Count()
		count = count || known > 0 || unclear
		look = look || count || l.Control.ReadOften.Load()
		until[i] = l.Newest()
	}
	sent := time.Now()
	pulses, now, err := h.send(ctx, count, look)
	if err != nil {
		return err
	}
	h.beats++
	registrations := h.registrations
	for i, l := range h.lanes {
		l.Store.RedisTime(now)
		if pulses[i].Version >= 0 {
			l.NoteVersion(pulses[i].Version)
		}
		if pulses[i].Alive && l.Confirmed.Load() != nil && !h.unanswered[l] {
			l.Confirmed.Store(&sent)
			h.emitRegained(l)
			err = h.reconcile(ctx, l, pulses[i].Claims, until[i])
		} else {
			l.Control.Since.CompareAndSwap(0, now.UnixMilli())
			missing = append(missing, l)
		}
		if err != nil && !redisstore.IsWrongType(err) {
			return err
		}
		fault = cmp.Or(fault, err) // a key of another type keeps no other queue from its heartbeat
	}
	refused, err := h.register(ctx, missing)
	if err != nil {
		return err
	}
	fault = cmp.Or(fault, refused)
	h.Exec.WakeAll()
	h.Exec.WakeFetcher()
	if look {
		h.remind(ctx)
	}
	h.publish(ctx)
	h.publishStatus(ctx)
	h.publishMetrics(ctx)
	if h.registrations != registrations {
		h.announcer.now()
	}
	return fault
}

// remind puts the worker back where Redis has lost it although its heartbeat is there, and makes publish write again
// what is lost of it.
func (h *Heartbeat) remind(ctx context.Context) {
	if h.forbidden || ctx.Err() != nil {
		return
	}
	lanes, stores := lane.Where(h.lanes, func(l *lane.Lane) bool {
		return l.Confirmed.Load() != nil && !h.unanswered[l]
	})
	if len(lanes) == 0 {
		return
	}
	known, err := redisstore.Known(ctx, &h.Link, stores, h.worker)
	if err != nil {
		// The next look asks again.
		if h.forbidden = answer.Forbidden(err); !answer.Is(err) {
			h.Link.HangUp()
		}
		h.log.WithError(err).Debug("cannot find out whether Redis has lost this worker")
		return
	}
	for i, l := range lanes {
		if !known[i] {
			h.forgetPublished(l)
		}
	}
}

// send renews the heartbeats on a connection of its own. count asks for the number of claims, look for the version of
// the control hash.
func (h *Heartbeat) send(ctx context.Context, count, look bool) (pulses []redisstore.Pulse, now time.Time, err error) {
	done := h.Health.Call()
	defer func() {
		done(err)
		if err != nil {
			h.Link.HangUp()
		}
	}()
	if _, err = h.Link.Open(ctx); err != nil {
		return nil, time.Time{}, err
	}
	return redisstore.Beat(ctx, &h.Link, h.stores, h.worker, h.life, count, look)
}

// registration is an attempt to register the worker on a queue.
type registration struct {
	lane   *lane.Lane
	before []*lane.Claim // that were open before the script was sent
	until  uint64        // the newest of them
	again  bool
	pulse  string
	sent   time.Time
	lost   int // of before; -1 until Redis has answered
}

// register registers the worker on queues, and reports keys of another type apart from other errors.
func (h *Heartbeat) register(ctx context.Context, lanes []*lane.Lane) (refused, err error) {
	// Do not cancel this when the worker stops: unregister must come after the registration.
	deadline, _ := ctx.Deadline()
	call, cancel := context.WithDeadline(context.WithoutCancel(ctx), deadline)
	defer cancel()
	// Few at a time: claims whose calls are under way during a registration are given back.
	for page := range slices.Chunk(lanes, registeredAtOnce) {
		var all []registration
		var stores []*redisstore.Store
		var pulses []string
		for _, l := range page {
			r := h.beginRegistration(l)
			all, stores, pulses = append(all, r), append(stores, l.Store), append(pulses, r.pulse)
		}
		for i, a := range redisstore.RegisterEach(call, stores, h.worker, h.life, pulses) {
			switch e := h.endRegistration(ctx, &all[i], a.Value, a.Err); {
			case redisstore.IsWrongType(e):
				refused = cmp.Or(refused, e)
			default:
				err = cmp.Or(err, e)
			}
		}
		h.logExpired(all)
		if err != nil {
			return refused, err
		}
	}
	return refused, nil
}

// logExpired logs, in one line, the queues on which the heartbeat had expired.
func (h *Heartbeat) logExpired(all []registration) {
	var names []string
	lost, kept := 0, 0
	for i := range all {
		if r := &all[i]; r.again && r.lost >= 0 {
			names, lost, kept = append(names, r.lane.Store.Name), lost+r.lost, kept+len(r.before)-r.lost
		}
	}
	log := h.log.WithField("lost", lost).WithField("kept", kept)
	switch n := len(names); n {
	case 0:
		return
	case 1:
		log = log.WithField("queue", names[0])
	default:
		log = log.WithField("queues", names[:min(n, lane.MostLogged)]).WithField("count", n)
	}
	log.Warn("heartbeat had expired; registered again")
}

// beginRegistration notes what must be known of a queue before the worker registers there.
func (h *Heartbeat) beginRegistration(l *lane.Lane) registration {
	r := registration{lost: -1, lane: l, before: l.OpenClaims(), again: l.Confirmed.Load() != nil}
	if r.again && !l.Refused.Load() { // only once, however often Redis refuses
		h.emitLost(l, nil)
		// Redis was away for longer than the heartbeat lives, or this process stood still. The same may hold for all
		// other workers, so do not judge them dead now.
		h.Health.Break()
	}
	r.until = l.Newest()
	l.NextEpoch()
	h.forgetPublished(l) // Redis has forgotten it with the worker
	h.registrations++
	r.pulse = h.value + ":" + strconv.Itoa(h.registrations)
	r.sent = time.Now()
	return r
}

// endRegistration does what follows from the answer. Earlier claims that Redis does not list in it are lost. It says
// nothing about claims that were made after the script was sent.
func (h *Heartbeat) endRegistration(ctx context.Context, r *registration, tokens []string, err error) error {
	l := r.lane
	h.unanswered[l] = err != nil
	l.Refused.Store(redisstore.IsWrongType(err))
	if l.Refused.Load() {
		// Tasks that cannot start must not take the executors' places from those of other queues.
		lane.GiveBack(h.Exec.TakeBack(l))
	}
	if err == nil || errors.Is(err, redisstore.ErrUnknown) {
		l.Registered.Store(true)
	}
	if err != nil {
		l.NextEpoch()
		return err
	}
	stands := make(map[string]bool, len(tokens))
	for _, token := range tokens {
		stands[token] = true
	}
	r.lost = 0
	for _, c := range r.before {
		if !stands[c.Token] && l.Lose(c) {
			r.lost++
		}
	}
	l.Pulse.Store(&r.pulse)
	// End the registration before the heartbeat counts as fresh, which lets the fetcher claim: claims whose call begins
	// during a registration are given back.
	l.NextEpoch()
	l.Confirmed.Store(&r.sent)
	h.emitRegained(l)
	return h.releaseTokens(ctx, l, l.UnknownTokens(tokens, r.until))
}

// CheckExpired emits an event when a heartbeat that cannot be renewed may have expired.
func (h *Heartbeat) CheckExpired(err error) {
	for _, l := range h.lanes {
		if l.Confirmed.Load() != nil && !l.Fresh(h.life) {
			h.emitLost(l, err)
		}
	}
}

// emitLost emits, once, that a heartbeat has or may have expired.
func (h *Heartbeat) emitLost(l *lane.Lane, err error) {
	if !h.ReportedLost[l] {
		h.ReportedLost[l] = true
		h.Events.Emit(events.Event{Kind: event.HeartbeatLost, Queue: l.Store.Name, Err: err})
	}
}

// emitRegained emits that a lost heartbeat is renewed.
func (h *Heartbeat) emitRegained(l *lane.Lane) {
	if h.ReportedLost[l] {
		delete(h.ReportedLost, l)
		h.Events.Emit(events.Event{Kind: event.HeartbeatRegained, Queue: l.Store.Name})
	}
}

// reconcile gives back claims that Redis has for this worker and that the worker does not know, because their replies
// were lost. claims is how many Redis has.
func (h *Heartbeat) reconcile(ctx context.Context, l *lane.Lane, claims int, until uint64) error {
	known, calling, unclear := l.Count()
	if claims < 0 || claims == 0 || !unclear && (calling || claims <= known) {
		return nil
	}
	tokens, err := l.Store.Tokens(ctx, h.worker)
	if err != nil {
		return err
	}
	return h.releaseTokens(ctx, l, l.UnknownTokens(tokens, until))
}

// releaseTokens gives back claims whose replies were lost.
func (h *Heartbeat) releaseTokens(ctx context.Context, l *lane.Lane, tokens []string) error {
	return l.ReleaseTokens(ctx, tokens, func(n int) {
		h.log.With("queue", l.Store.Name).WithField("tasks", n).Warn("gave back tasks whose claim got no reply")
	})
}

// lookAtLeast: every heartbeat of this number asks for the version of the control hash, and whether Redis still has
// what was written of the worker. That is at least once in the life of a heartbeat. A worker that has claims, or waits
// for the end of a pause or an order, asks with each heartbeat.
const lookAtLeast = 4
