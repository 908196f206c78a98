package run

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/etcd-medic/etcd-medic/internal/plural"
	"github.com/etcd-medic/etcd-medic/repair/plan"
)

// No step removes a voter that the cluster needs. Before each step that stops, removes or replaces a member, the runner
// counts the voters that answer. The step begins only when they are a majority without the member.

// voters counts those that serve, and lets no step begin that needs more of them.
type voters struct {
	*cluster
	// guarded is true when the cluster serves while it is repaired: then no step may take away its majority.
	guarded bool
}

// voter is one voter of the running cluster, and what it answers now.
type voter struct {
	id   uint64
	name string
	m    *plan.Member // nil when the plan does not know it
	// answers is true when it belongs to this cluster, votes and knows a leader according to its answer. healthy is
	// true when a linearizable read through it works too. why says what is missing.
	answers, healthy bool
	why              string
	// leaderless is true when it votes and only lacks a leader. unwanted says what to do if the plan does not know it.
	leaderless bool
	unwanted   string
	// runs is true when its server answers, whatever it lacks. listed is its row in the member list, nil in tests.
	runs   bool
	listed *etcdserverpb.Member
}

// headcount are the voters as they answer at one moment.
type headcount struct {
	voters []voter
	// unconfirmed says why no majority confirmed the member list; it is empty where one did.
	unconfirmed string
	// problem says why nothing is known about the voters.
	problem string
}

// ruling is whether a step may begin, and what it lacks.
type ruling struct {
	allowed bool
	// text is the obstacle, missing are the voters that would help, need is how many of them.
	text    string
	missing []voter
	need    int
	// leaderless is true when the voters that run are too few to elect a leader: until then the list cannot be changed.
	leaderless bool
	// caution is what an operator should know about a step that is allowed although the cluster tolerates no further
	// failure.
	caution string
}

func (h *headcount) has(id uint64) bool { return h.voter(id) != nil }

func (h *headcount) voter(id uint64) *voter {
	for i := range h.voters {
		if h.voters[i].id == id {
			return &h.voters[i]
		}
	}
	return nil
}

// without counts the healthy voters except one, and returns the other voters.
func (h *headcount) without(id uint64) (healthy int, missing []voter) {
	for _, v := range h.voters {
		switch {
		case v.id == id:
		case v.healthy:
			healthy++
		default:
			missing = append(missing, v)
		}
	}
	return healthy, missing
}

// decides reports whether the cluster has a quorum now.
func (h *headcount) decides() ruling {
	if h.problem != "" {
		return ruling{text: "the cluster does not say who votes: " + h.problem, need: 1}
	}
	answer, leaderless, missing := 0, 0, []voter{}
	var silent []voter
	for _, v := range h.voters {
		if v.answers {
			answer++
			continue
		}
		if missing = append(missing, v); v.leaderless {
			leaderless++
		} else {
			silent = append(silent, v)
		}
	}
	need := plan.Majority(len(h.voters))
	switch runs := answer + leaderless; {
	case leaderless > 0 && runs < need: // they wait for the others
		return ruling{text: fmt.Sprintf("%d of %d voters run, %d are needed to elect a leader", runs, len(h.voters),
			need), missing: silent, need: need - runs, leaderless: true}
	case answer < need:
		return ruling{text: fmt.Sprintf("%d of %d voters answer, %d are needed to decide anything", answer,
			len(h.voters), need), missing: missing, need: need - answer}
	case h.unconfirmed != "":
		return ruling{text: fmt.Sprintf("%d of %d voters answer, but no majority confirms the member list: %s", answer,
			len(h.voters), h.unconfirmed), missing: missing}
	}
	return ruling{allowed: true}
}

// allServe reports whether every voter serves.
func (h *headcount) allServe() ruling {
	if r := h.decides(); !r.allowed {
		return r
	}
	healthy, missing := h.without(0)
	if len(missing) == 0 {
		return ruling{allowed: true}
	}
	return ruling{text: fmt.Sprintf("%d of %d voters serve, all are needed now", healthy, len(h.voters)),
		missing: missing, need: len(missing)}
}

// mayStop rules on stopping a member. restarted is true when it comes back at once on its own data dir.
func (h *headcount) mayStop(name string, id uint64, restarted bool) ruling {
	if h.problem == "" && !h.has(id) {
		return ruling{allowed: true} // it does not vote
	}
	if r := h.decides(); !r.allowed {
		return r
	}
	healthy, missing := h.without(id)
	need := plan.Majority(len(h.voters))
	if healthy >= need {
		return ruling{allowed: true}
	}
	if restarted && len(missing) == 0 {
		return ruling{allowed: true, caution: fmt.Sprintf("%s has %s: it does not serve while %s restarts",
			"the cluster", plural.Of(len(h.voters), "voter", "voters"), name)}
	}
	return ruling{text: fmt.Sprintf("without %s %d of %d voters would serve, %d are needed", name, healthy,
		len(h.voters), need), missing: missing, need: need - healthy}
}

// mayRemove rules on removing a member from the list: the others must have a majority among themselves.
func (h *headcount) mayRemove(name string, id uint64) ruling {
	if r := h.decides(); !r.allowed || !h.has(id) {
		return r
	}
	healthy, missing := h.without(id)
	need := plan.Majority(len(h.voters) - 1)
	if healthy >= need {
		return ruling{allowed: true}
	}
	return ruling{text: fmt.Sprintf("once %s is removed %d of %d voters would serve, %d are needed", name, healthy,
		len(h.voters)-1, need), missing: missing, need: need - healthy}
}

// mayAdd rules on adding a member. One that votes at once counts in the majority before it serves.
func (h *headcount) mayAdd(name string, voting bool) ruling {
	r := h.decides()
	if !r.allowed || !voting {
		return r
	}
	healthy, missing := h.without(0)
	need := plan.Majority(len(h.voters) + 1)
	switch {
	case healthy >= need:
		return r
	case len(missing) == 0:
		r.caution = fmt.Sprintf("%s votes as soon as it is added: the cluster decides nothing until it runs", name)
		return r
	}
	return ruling{text: fmt.Sprintf("%s votes as soon as it is added: then %d of %d voters would serve, %d are needed",
		name, healthy, len(h.voters)+1, need), missing: missing, need: need - healthy}
}

// count asks every voter at once.
func (vs *voters) count(ctx context.Context) *headcount {
	h := &headcount{}
	list, unconfirmed, err := vs.listNow(ctx)
	if err != nil {
		h.problem = err.Error()
		return h
	}
	h.unconfirmed = unconfirmed
	for _, m := range list {
		if p := vs.byID(m.GetID()); !m.GetIsLearner() && vs.plan.Counted(p) {
			h.voters = append(h.voters, voter{id: m.GetID(), name: vs.nameOf(m), m: p, listed: m})
		}
	}
	var wg sync.WaitGroup
	for i := range h.voters {
		wg.Go(func() { vs.examine(ctx, &h.voters[i]) })
	}
	wg.Wait()
	return h
}

// listNow returns the present member list without retries. Where only a single member's own list is available,
// unconfirmed says why no majority confirmed it.
func (vs *voters) listNow(ctx context.Context) (list []*etcdserverpb.Member, unconfirmed string, err error) {
	var errs []error
	for _, own := range []bool{false, true} {
		for _, m := range vs.speakers() {
			if err := ctx.Err(); err != nil {
				return nil, "", err
			}
			if why := vs.host.serves(ctx, m); why != nil {
				if own {
					errs = append(errs, unheard(m, why))
				}
				continue
			}
			if list, err = vs.listOf(ctx, m, own); err == nil {
				if own && len(errs) == 0 {
					errs = append(errs, errNoAnswer) // it started to serve just now
				}
				return list, oneLine(errs), nil
			}
			errs = append(errs, fmt.Errorf("%s: %w", m.Name, err))
			if !own {
				break // another one would wait for the same majority
			}
		}
	}
	return nil, "", errors.New(oneLine(errs))
}

// speakers are the members that may know the member list, the best one first.
func (vs *voters) speakers() []*plan.Member {
	out := []*plan.Member{vs.best()}
	for i := range vs.plan.Members {
		if m := &vs.plan.Members[i]; m != out[0] && !m.Learner &&
			(m.Action == plan.Keep || m.Action == plan.Start || m.Action == plan.Restart || vs.isIn(m)) {
			out = append(out, m)
		}
	}
	return out
}

func (vs *voters) listOf(ctx context.Context, m *plan.Member, own bool) ([]*etcdserverpb.Member, error) {
	ctx, cancel := context.WithTimeout(ctx, vs.limits.call)
	defer cancel()
	var list []*etcdserverpb.Member
	err := vs.ask(ctx, m, func(ctx context.Context, c *clientv3.Client) error {
		var opts []clientv3.OpOption
		if own {
			opts = append(opts, clientv3.WithSerializable())
		}
		resp, err := c.MemberList(ctx, opts...)
		if err == nil {
			list = resp.Members
		}
		return err
	})
	return list, err
}

// examine asks one voter for its ID and leader, and makes a read that needs the leader's consent.
func (vs *voters) examine(ctx context.Context, v *voter) {
	if v.m == nil {
		if v.why = "the plan does not know it"; v.listed != nil {
			v.unwanted = vs.ifUnwanted(v.listed)
		}
		return
	}
	if why := vs.host.serves(ctx, v.m); why != nil {
		v.why = vs.silence(v.m, why)
		return
	}
	ctx, cancel := context.WithTimeout(ctx, vs.limits.call)
	defer cancel()
	st, err := vs.status(ctx, v.m)
	v.runs = err == nil
	switch {
	case err != nil:
		v.why = err.Error()
	case st.Header.GetMemberId() != v.id:
		v.why = fmt.Sprintf("member %x answers in its place", st.Header.GetMemberId())
	case st.Header.GetClusterId() != uint64(vs.plan.Cluster.ID):
		v.why = fmt.Sprintf("it belongs to cluster %x", st.Header.GetClusterId())
	case st.IsLearner:
		v.why = "it is a learner still"
	case st.Leader == 0:
		v.why, v.leaderless = "it knows no leader", true
	default:
		v.answers = true
	}
	if !v.answers {
		return
	}
	err = vs.ask(ctx, v.m, func(ctx context.Context, c *clientv3.Client) error {
		_, err := c.Get(ctx, probeKey, clientv3.WithCountOnly())
		return err
	})
	if v.healthy = err == nil; err != nil {
		v.why = "a linearizable read through it fails: " + err.Error()
	}
}

// rule is what the voters allow now. kind and m are the step and its member, for steps that need a majority of the
// others.
func (vs *voters) rule(ctx context.Context, n need, kind plan.StepKind, m *plan.Member) ruling {
	if m != nil && m.Action == plan.Retire {
		return ruling{allowed: true} // the cluster has removed it, so it does not vote
	}
	h := vs.count(ctx)
	if n == everyVoter && !vs.sandbox { // there some voters may have no copy
		return h.allServe()
	}
	switch kind {
	case plan.StepStop, plan.StepSave:
		return h.mayStop(m.Name, uint64(m.ID), kind == plan.StepStop && !leaves(m))
	case plan.StepRemove:
		return h.mayRemove(m.Name, uint64(m.ID))
	case plan.StepAdd:
		return h.mayAdd(m.Name, !vs.plan.Cluster.KnowsLearners())
	}
	return h.decides()
}

// unheard says that a member is not asked for the member list.
func unheard(m *plan.Member, why error) error {
	if refusesUs(why) {
		return fmt.Errorf("%s refuses the login: %w", m.Name, why)
	}
	if badCertificate(why) {
		return fmt.Errorf("%s does not answer: %w", m.Name, why)
	}
	return fmt.Errorf("%s does not answer", m.Name)
}

// errNoMajority ends a run after a wait for voters without success.
var errNoMajority = errors.New("gave up waiting for a majority")

// errLocked ends a run whose user the best member refuses: everything is asked through it.
var errLocked = errors.New("auth was turned on or changed meanwhile")

// locked returns an error if the best member refuses the user of this run.
func (vs *voters) locked(ctx context.Context) error {
	best := vs.best()
	err := vs.host.serves(ctx, best)
	if err == nil {
		call, end := context.WithTimeout(ctx, vs.limits.call)
		defer end()
		err = vs.ask(call, best, func(ctx context.Context, c *clientv3.Client) error {
			_, err := c.Get(ctx, probeKey, clientv3.WithCountOnly(), clientv3.WithSerializable())
			return err
		})
	}
	if !refusesUs(err) {
		return nil
	}
	return fmt.Errorf("%s refuses the login (%w): %w; name a user with role root, and its present password",
		best.Name, err, errLocked)
}

// quorum waits until the voters allow a step. It names the voters it waits for, and how to start them. A person may
// give up at each question; a run without a person gives up after QuorumWait.
func (vs *voters) quorum(ctx context.Context, n need, kind plan.StepKind, m *plan.Member) error {
	if !vs.guarded || n == noVoters {
		return nil
	}
	said, patience := "", vs.patience()
	since := time.Now()
	for {
		now := vs.rule(ctx, n, kind, m)
		if err := ctx.Err(); err != nil {
			return err
		}
		if now.allowed {
			vs.allowed(now, said != "")
			return nil
		}
		if err := vs.locked(ctx); err != nil {
			return err
		}
		if text := now.waits(); text != said {
			said = text
			vs.notice("waiting: " + text)
		}
		if time.Since(since) >= patience {
			if err := vs.askOn(ctx, &now, time.Since(since)); err != nil {
				return err
			}
			since = time.Now()
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(vs.limits.recount):
		}
	}
}

func (vs *voters) allowed(now ruling, waited bool) {
	if waited {
		vs.notice("a majority serves again: the repair continues")
	}
	if now.caution != "" {
		vs.notice(now.caution)
	}
}

// askFirst is how long a cluster may take to elect a leader before a person is asked.
const askFirst = 15 * time.Second

// patience is how long a step waits for voters before it asks or gives up.
func (vs *voters) patience() time.Duration {
	switch {
	case vs.live == nil:
		return vs.limits.step
	case vs.live.prompted():
		return min(askFirst, vs.live.QuorumWait)
	}
	return vs.live.QuorumWait
}

// askOn asks a person whether to keep waiting; without one the wait is over.
func (vs *voters) askOn(ctx context.Context, now *ruling, waited time.Duration) error {
	if vs.live == nil || !vs.live.prompted() {
		return fmt.Errorf("%w after %v: %s", errNoMajority, waited.Round(time.Second), now.waits())
	}
	text := append([]string{"the step waits: " + now.text}, now.bringBack(vs.plan)...)
	err := vs.live.Prompt(ctx, append(text, "then the voters are counted again"))
	if errors.Is(err, ErrStopped) {
		return fmt.Errorf("%w (%w): %s", errNoMajority, err, now.waits())
	}
	return err
}

// lacks says what a failed step lacked of the voters; noVoters when it failed for another reason. The step is repeated
// once it has that: repeated steps do no harm.
func (vs *voters) lacks(ctx context.Context, a action, err error) need {
	for _, final := range []error{ErrStopped, errNoMajority, errLocked, errHashes} {
		if errors.Is(err, final) {
			return noVoters
		}
	}
	switch {
	case !vs.guarded || a.needs == noVoters:
	case errors.Is(err, errNotConnected):
		return everyVoter
	case !vs.rule(ctx, a.general(), "", nil).allowed:
		return a.general()
	}
	return noVoters
}
