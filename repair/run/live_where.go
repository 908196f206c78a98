package run

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"
	"sync"

	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/dumplog"
	"github.com/etcd-medic/etcd-medic/refusal"
	"github.com/etcd-medic/etcd-medic/repair/plan"
)

// whereabouts knows which endpoint belongs to which member. Members that answer show it. For those that are down it is
// known from an earlier process or from the operator, or found out when they come up.
type whereabouts struct {
	o      *LiveOptions
	r      *runner
	logins *logins

	// mu guards endpoints, by member name; free are those of o.Endpoints that no member has yet, listed the client URLs
	// in the member list.
	mu                sync.Mutex
	endpoints, listed map[string]string
	// given are the members that the operator named, by endpoint.
	given map[string]string
	free  []string
}

// named splits endpoints that were given as NAME=URL.
func (w *whereabouts) named() error {
	for i, e := range w.o.Endpoints {
		name, u, ok := strings.Cut(e, "=")
		if !ok || strings.Contains(name, "://") {
			continue
		}
		at := slices.IndexFunc(w.r.plan.Members, func(m plan.Member) bool { return m.Named(name) })
		if at < 0 {
			return refusal.New("the members are "+strings.Join(plan.MemberNames(w.r.plan.Members), ", "),
				"--endpoints %s: the plan has no member %s", e, name)
		}
		w.o.Endpoints[i] = u
		w.endpoints[w.r.plan.Members[at].Name] = u
		w.given[u] = w.r.plan.Members[at].Name
	}
	return nil
}

// endpoint is where a member is reached, "" when that is not known yet.
func (w *whereabouts) endpoint(m *plan.Member) string {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch e := w.endpoints[m.Name]; {
	case e != "":
		return e
	case len(w.free) > 0: // it must be one of these
		return ""
	}
	for _, e := range append([]string{w.listed[m.Name]}, m.ClientURLs...) {
		if e != "" && w.takenBy(m, e) == "" {
			return e
		}
	}
	return ""
}

// takenBy is another member that answers at an endpoint, "" if there is none. w.mu must be held. Old copies of a
// member, and rows of removed ones, show the URL of the member that is there now.
func (w *whereabouts) takenBy(m *plan.Member, e string) string {
	if m.Action == plan.Retire || m.Zombie() {
		return ""
	}
	for name, x := range w.endpoints {
		if o := w.r.plan.Member(name); x == e && name != m.Name && o != nil && o.Action != plan.Retire && !o.Zombie() {
			return name
		}
	}
	return ""
}

// ownPlace refuses a member whose advertised client URLs are all those of other members: neither what it holds nor
// whether it has stopped can be found out.
func (w *whereabouts) ownPlace(m *plan.Member) error {
	if w.endpoint(m) != "" {
		return nil
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, e := range append([]string{w.listed[m.Name]}, m.ClientURLs...) {
		if other := w.takenBy(m, e); other != "" && len(w.free) == 0 {
			return refusal.New("name its own URL: --endpoints "+m.Name+"=URL",
				"%s advertises the client URL %s, and %s answers there", m.Name, e, other)
		}
	}
	return nil
}

// place is where a member is reached, for people.
func (w *whereabouts) place(m *plan.Member) string {
	if e := w.endpoint(m); e != "" {
		return e
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	return strings.Join(w.free, " or ")
}

// seek finds out whether a member answers at one of the endpoints that no member has yet, and returns its endpoint.
func (w *whereabouts) seek(ctx context.Context, m *plan.Member) string {
	if e := w.endpoint(m); e != "" {
		return e
	}
	w.mu.Lock()
	free := slices.Clone(w.free)
	w.mu.Unlock()
	for _, e := range free {
		if id, err := w.who(ctx, e); err != nil || id == 0 || id != w.r.idOf(m) && id != uint64(m.ID) ||
			w.r.byID(id) != nil && w.r.byID(id) != m {
			continue // not it, or another member with the same ID: only NAME=URL distinguishes them
		}
		w.mu.Lock()
		w.endpoints[m.Name] = e
		w.free = slices.DeleteFunc(w.free, func(x string) bool { return x == e })
		w.mu.Unlock()
		_ = w.r.note("", "endpoint:"+m.Name, e) // a later process finds out by itself
		return e
	}
	return ""
}

// quiet reports whether no process listens at any endpoint that a member without one may have.
func (w *whereabouts) quiet(ctx context.Context) bool {
	return w.allFree(ctx, func(ctx context.Context, e string) bool { return !listens(ctx, e) })
}

// refuse reports whether the hosts of all these endpoints refuse connections.
func (w *whereabouts) refuse(ctx context.Context) bool { return w.allFree(ctx, refused) }

func (w *whereabouts) allFree(ctx context.Context, is func(context.Context, string) bool) bool {
	w.mu.Lock()
	free := slices.Clone(w.free)
	w.mu.Unlock()
	for _, e := range free {
		if !is(ctx, e) {
			return false
		}
	}
	return len(free) > 0 && ctx.Err() == nil
}

// locate finds out which endpoint is whose.
func (w *whereabouts) locate(ctx context.Context) error {
	byID := map[uint64]string{}
	for i := range w.r.plan.Members {
		m := &w.r.plan.Members[i]
		for _, id := range []uint64{uint64(m.ID), w.r.idOf(m)} {
			if other := w.r.plan.Member(byID[id]); other == nil || other.Action == plan.Retire {
				byID[id] = m.Name
			}
		}
	}
	delete(byID, 0) // a standby that has not joined
	var errs []error
	found := 0
	for _, e := range w.o.Endpoints {
		id, err := w.who(ctx, e)
		if err != nil {
			access := evidence.Access{CACert: w.o.CACert, Cert: w.o.Cert, Key: w.o.Key}
			errs = append(errs, fmt.Errorf("%s: %w", e, access.Because(ctx, []string{e}, err)))
		} else if name := w.whose(e, id, byID); name != "" {
			if other := w.endpoints[name]; other != "" && other != e && w.given[e] == "" && w.sharedID(id) {
				return refusal.New("say which is whose: --endpoints NAME="+e, "%s and %s both answer as member %s, "+
					"and several data dirs of the plan are of that member", other, e, dumplog.ID(id))
			}
			w.endpoints[name] = e
			found++
		}
	}
	if found > 0 {
		return w.assign()
	}
	const hint = "look at --endpoints and the credentials"
	if len(errs) < len(w.o.Endpoints) {
		errs = append([]error{errors.New("they belong to members that the plan does not know")}, errs...)
		return refusal.New(hint, "no endpoint answers as a member of the plan: %s", oneLine(errs))
	}
	// a login that failed will not succeed with more members up
	if slices.ContainsFunc(errs, func(e error) bool { return !transient(e) }) {
		return refusal.New(hint, "no endpoint says which member it is: %s", oneLine(errs))
	}
	return refusal.New(hint, "%w: %s", errNoAnswer, oneLine(errs))
}

// whose is the name of the member that answers at an endpoint with this ID: the operator's choice, if that member may
// have the ID.
func (w *whereabouts) whose(e string, id uint64, byID map[uint64]string) string {
	if m := w.r.plan.Member(w.given[e]); m != nil && (uint64(m.ID) == id || w.r.idOf(m) == id) {
		return m.Name
	}
	return byID[id]
}

// sharedID reports whether several members of the plan have one ID, as copies of one data dir do.
func (w *whereabouts) sharedID(id uint64) bool {
	n := 0
	for i := range w.r.plan.Members {
		if uint64(w.r.plan.Members[i].ID) == id {
			n++
		}
	}
	return n > 1
}

func oneLine(errs []error) string {
	if len(errs) == 0 {
		return ""
	}
	return strings.ReplaceAll(errors.Join(errs...).Error(), "\n", "; ")
}

var errNoAnswer = errors.New("no endpoint answers")

// assign finds the endpoints of members that do not answer. These are from the operator or an earlier process,
// advertised client URLs, on the host of their peer URL, or the last free one. They are kept in the journal for later
// processes that find a member down.
func (w *whereabouts) assign() error {
	w.free = slices.Clone(w.o.Endpoints)
	for _, e := range w.endpoints {
		w.free = slices.DeleteFunc(w.free, func(x string) bool { return x == e })
	}
	for _, fits := range []func(m *plan.Member, e string) bool{
		func(m *plan.Member, e string) bool { return e == w.r.j.value("endpoint:"+m.Name) },
		func(m *plan.Member, e string) bool { return slices.Contains(m.ClientURLs, e) },
		w.sameHost,
	} {
		for _, m := range w.without() {
			if i := slices.IndexFunc(w.free, func(e string) bool { return fits(m, e) }); i >= 0 {
				w.endpoints[m.Name] = w.free[i]
				w.free = slices.Delete(w.free, i, i+1)
			}
		}
	}
	if without := w.without(); len(w.free) == 1 && len(without) == 1 {
		w.endpoints[without[0].Name], w.free = w.free[0], nil
	}
	for _, name := range slices.Sorted(maps.Keys(w.endpoints)) {
		if e := w.endpoints[name]; w.r.j.value("endpoint:"+name) != e {
			if err := w.r.note("", "endpoint:"+name, e); err != nil {
				return err
			}
		}
	}
	return nil
}

// without are the members without a known endpoint.
func (w *whereabouts) without() []*plan.Member {
	var out []*plan.Member
	for i := range w.r.plan.Members {
		if m := &w.r.plan.Members[i]; w.endpoints[m.Name] == "" {
			out = append(out, m)
		}
	}
	return out
}

// sameHost reports whether an endpoint is on the host of the member's peer URL, and no other member's peer URL or
// endpoint is.
func (w *whereabouts) sameHost(m *plan.Member, e string) bool {
	host := hostOf(e)
	if host == "" || len(m.PeerURLs) == 0 || hostOf(m.PeerURLs[0]) != host {
		return false
	}
	for i := range w.r.plan.Members {
		o := &w.r.plan.Members[i]
		if o.Name != m.Name && slices.ContainsFunc(o.PeerURLs, func(u string) bool { return hostOf(u) == host }) {
			return false
		}
	}
	n := 0
	for _, x := range w.o.Endpoints {
		if hostOf(x) == host {
			n++
		}
	}
	return n == 1
}

func hostOf(u string) string {
	p, err := url.Parse(u)
	if err != nil {
		return ""
	}
	return p.Hostname()
}

// who returns the ID of the member at an endpoint. The time for an answer begins after the login.
func (w *whereabouts) who(ctx context.Context, endpoint string) (uint64, error) {
	if !listens(ctx, endpoint) {
		return 0, errSilent
	}
	c, err := w.logins.dial(endpoint)
	if err != nil {
		return 0, err
	}
	ctx, cancel := context.WithTimeout(ctx, ask)
	defer cancel()
	st, err := c.Status(ctx, endpoint)
	if err != nil {
		return 0, err
	}
	return st.Header.GetMemberId(), nil
}
