package run

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"

	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/dumplog"
	"github.com/etcd-medic/etcd-medic/refusal"
	"github.com/etcd-medic/etcd-medic/repair/plan"
)

// Which endpoint belongs to which member. Members that answer show it. For those that are down it is known from an
// earlier process or from the operator, or found out when they come up.

// named splits endpoints that were given as NAME=URL.
func (f *field) named() error {
	for i, e := range f.o.Endpoints {
		name, u, ok := strings.Cut(e, "=")
		if !ok || strings.Contains(name, "://") {
			continue
		}
		at := slices.IndexFunc(f.r.plan.Members, func(m plan.Member) bool { return m.Named(name) })
		if at < 0 {
			return refusal.New("the members are "+strings.Join(plan.MemberNames(f.r.plan.Members), ", "),
				"--endpoints %s: the plan has no member %s", e, name)
		}
		f.o.Endpoints[i] = u
		f.endpoints[f.r.plan.Members[at].Name] = u
		f.given[u] = f.r.plan.Members[at].Name
	}
	return nil
}

// endpoint is where a member is reached, "" when that is not known yet.
func (f *field) endpoint(m *plan.Member) string {
	f.where.Lock()
	defer f.where.Unlock()
	switch e := f.endpoints[m.Name]; {
	case e != "":
		return e
	case len(f.free) > 0: // it must be one of these
		return ""
	case f.listed[m.Name] != "":
		return f.listed[m.Name]
	case len(m.ClientURLs) > 0:
		return m.ClientURLs[0]
	}
	return ""
}

// place is where a member is reached, for people.
func (f *field) place(m *plan.Member) string {
	if e := f.endpoint(m); e != "" {
		return e
	}
	f.where.Lock()
	defer f.where.Unlock()
	return strings.Join(f.free, " or ")
}

// seek finds out whether a member answers at one of the endpoints that no member has yet, and returns its endpoint.
func (f *field) seek(ctx context.Context, m *plan.Member) string {
	if e := f.endpoint(m); e != "" {
		return e
	}
	f.where.Lock()
	free := slices.Clone(f.free)
	f.where.Unlock()
	for _, e := range free {
		if id, err := f.who(ctx, e); err != nil || id == 0 || id != f.r.idOf(m) && id != uint64(m.ID) ||
			f.r.byID(id) != nil && f.r.byID(id) != m {
			continue // not it, or another member with the same ID: only NAME=URL distinguishes them
		}
		f.where.Lock()
		f.endpoints[m.Name] = e
		f.free = slices.DeleteFunc(f.free, func(x string) bool { return x == e })
		f.where.Unlock()
		_ = f.r.note("", "endpoint:"+m.Name, e) // a later process finds out by itself
		return e
	}
	return ""
}

// quiet reports whether no process listens at any endpoint that a member without one may have.
func (f *field) quiet(ctx context.Context) bool {
	f.where.Lock()
	free := slices.Clone(f.free)
	f.where.Unlock()
	for _, e := range free {
		if listens(ctx, e) {
			return false
		}
	}
	return len(free) > 0 && ctx.Err() == nil
}

// locate finds out which endpoint is whose.
func (f *field) locate(ctx context.Context) error {
	byID := map[uint64]string{}
	for i := range f.r.plan.Members {
		m := &f.r.plan.Members[i]
		for _, id := range []uint64{uint64(m.ID), f.r.idOf(m)} {
			if other := f.r.plan.Member(byID[id]); other == nil || other.Action == plan.Retire {
				byID[id] = m.Name
			}
		}
	}
	delete(byID, 0) // a standby that has not joined
	var errs []error
	found := 0
	for _, e := range f.o.Endpoints {
		id, err := f.who(ctx, e)
		if err != nil {
			access := evidence.Access{CACert: f.o.CACert, Cert: f.o.Cert, Key: f.o.Key}
			errs = append(errs, fmt.Errorf("%s: %w", e, access.Because(ctx, []string{e}, err)))
		} else if name := f.whose(e, id, byID); name != "" {
			if other := f.endpoints[name]; other != "" && other != e && f.given[e] == "" && f.sharedID(id) {
				return refusal.New("say which is whose: --endpoints NAME="+e, "%s and %s both answer as member %s, "+
					"and several data dirs of the plan are of that member", other, e, dumplog.ID(id))
			}
			f.endpoints[name] = e
			found++
		}
	}
	if found > 0 {
		return f.assign()
	}
	const hint = "look at --endpoints and the credentials"
	if len(errs) < len(f.o.Endpoints) {
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
func (f *field) whose(e string, id uint64, byID map[uint64]string) string {
	if m := f.r.plan.Member(f.given[e]); m != nil && (uint64(m.ID) == id || f.r.idOf(m) == id) {
		return m.Name
	}
	return byID[id]
}

// sharedID reports whether several members of the plan have one ID, as copies of one data dir do.
func (f *field) sharedID(id uint64) bool {
	n := 0
	for i := range f.r.plan.Members {
		if uint64(f.r.plan.Members[i].ID) == id {
			n++
		}
	}
	return n > 1
}

func oneLine(errs []error) string {
	return strings.ReplaceAll(errors.Join(errs...).Error(), "\n", "; ")
}

var errNoAnswer = errors.New("no endpoint answers")

// assign finds the endpoints of members that do not answer. These are from the operator or an earlier process,
// advertised client URLs, on the host of their peer URL, or the last free one. They are kept in the journal for later
// processes that find a member down.
func (f *field) assign() error {
	f.free = slices.Clone(f.o.Endpoints)
	for _, e := range f.endpoints {
		f.free = slices.DeleteFunc(f.free, func(x string) bool { return x == e })
	}
	for _, fits := range []func(m *plan.Member, e string) bool{
		func(m *plan.Member, e string) bool { return e == f.r.j.value("endpoint:"+m.Name) },
		func(m *plan.Member, e string) bool { return slices.Contains(m.ClientURLs, e) },
		f.sameHost,
	} {
		for _, m := range f.without() {
			if i := slices.IndexFunc(f.free, func(e string) bool { return fits(m, e) }); i >= 0 {
				f.endpoints[m.Name] = f.free[i]
				f.free = slices.Delete(f.free, i, i+1)
			}
		}
	}
	if without := f.without(); len(f.free) == 1 && len(without) == 1 {
		f.endpoints[without[0].Name], f.free = f.free[0], nil
	}
	for _, name := range slices.Sorted(maps.Keys(f.endpoints)) {
		if e := f.endpoints[name]; f.r.j.value("endpoint:"+name) != e {
			if err := f.r.note("", "endpoint:"+name, e); err != nil {
				return err
			}
		}
	}
	return nil
}

// without are the members without a known endpoint.
func (f *field) without() []*plan.Member {
	var out []*plan.Member
	for i := range f.r.plan.Members {
		if m := &f.r.plan.Members[i]; f.endpoints[m.Name] == "" {
			out = append(out, m)
		}
	}
	return out
}

// sameHost reports whether an endpoint is on the host of the member's peer URL, and no other member's peer URL or
// endpoint is.
func (f *field) sameHost(m *plan.Member, e string) bool {
	host := hostOf(e)
	if host == "" || len(m.PeerURLs) == 0 || hostOf(m.PeerURLs[0]) != host {
		return false
	}
	for i := range f.r.plan.Members {
		o := &f.r.plan.Members[i]
		if o.Name != m.Name && slices.ContainsFunc(o.PeerURLs, func(u string) bool { return hostOf(u) == host }) {
			return false
		}
	}
	n := 0
	for _, x := range f.o.Endpoints {
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
func (f *field) who(ctx context.Context, endpoint string) (uint64, error) {
	if !listens(ctx, endpoint) {
		return 0, errSilent
	}
	c, err := f.dial(endpoint)
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
