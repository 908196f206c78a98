package replay

import (
	"bytes"
	"slices"

	"github.com/etcd-medic/etcd-medic/compare/apply"
	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/dumplog"
	"github.com/etcd-medic/etcd-medic/release"
)

// A log that does not reach back to the first entry does not show users and roles at each of its entries. The database
// shows those of the end. After the last entry that can have changed them they were the same.

// endAuth is the auth that a database holds: users, roles and auth revision after the member's last entry.
type endAuth struct {
	state *apply.Auth
	// since is the last index up to the member's applied index that can have changed it.
	since uint64
	// raised are entries up to the applied index that certainly raised the auth revision; see hashShown.
	raised []uint64
}

// newEndAuth returns the auth of the member's database; nil if the log does not show what came before its end. An alarm
// may have disabled the checks. A request that the member proposed with the auth revision of the end shows that nothing
// has changed since, and so does one of another member that holds the same auth. A token (JWT) may carry the revision
// of another member, so no other database may have a higher one.
func newEndAuth(r *Result, m *evidence.Member, mayAlarm bool) *endAuth {
	if !m.DB.Auth.HasRevision || m.AppliedMax > r.Last {
		return nil
	}
	end := &endAuth{state: authFromDB(&m.DB.Auth, m.Version.Release())}
	changed := func(index uint64) {
		if index <= m.AppliedMax {
			end.since = max(end.since, index)
		}
	}
	end.hashShown(r.Survey, m)
	for _, e := range slices.Backward(r.Survey.Auth) {
		if e.Index <= m.AppliedMax && (mayAlarm || !end.refuses(e.Req)) {
			changed(e.Index)
			break
		}
	}
	for _, g := range r.Gaps {
		changed(min(g.To, max(g.From, m.AppliedMax)))
	}
	for _, list := range r.Undecodable {
		for i := range list {
			changed(list[i].Index)
		}
	}
	if !end.state.Enabled || slices.ContainsFunc(r.Members, func(o *MemberResult) bool {
		return o.Member.HasDB() && o.Member.DB.Auth.HasRevision && o.Member.DB.Auth.Revision > m.DB.Auth.Revision
	}) {
		return end
	}
	for _, o := range append(membersOf(r), m) {
		if o != m && (!o.HasDB() || !sameAuth(&o.DB.Auth, &m.DB.Auth)) {
			continue
		}
		for _, st := range r.Survey.Stamps[o.MemberID] {
			if st.AuthRevision == m.DB.Auth.Revision { // each change raises the revision
				end.since = min(end.since, max(st.Index, 1)-1)
			}
		}
	}
	return end
}

// hashShown finds the entries that gave a user the password hash that the database holds. A hash has a random salt, so
// no other entry has it, and the entry was not refused.
func (e *endAuth) hashShown(s *Survey, m *evidence.Member) {
	for i := range m.DB.Auth.Users {
		u := &m.DB.Auth.Users[i]
		var with []uint64
		for _, p := range s.Passwords(u.Name, m.AppliedMax) {
			if len(p.Hash) > 0 && bytes.Equal(p.Hash, u.Password) {
				with = append(with, p.Index)
			}
		}
		if len(with) == 1 {
			e.raised = append(e.raised, with[0])
		}
	}
}

// atMost bounds the auth revision that the member can have had at an entry: it never falls.
func (e *endAuth) atMost(index uint64) uint64 {
	n := uint64(0)
	for _, i := range e.raised {
		if i > index {
			n++
		}
	}
	return e.state.Revision - min(n, e.state.Revision)
}

// refuses reports whether the last request that could change auth was certainly refused: it needs role root, which its
// user does not have at the end and cannot have lost by this request.
func (e *endAuth) refuses(r *dumplog.Request) bool {
	if !e.state.Enabled || r.Kind == dumplog.KindAuthEnable || e.state.IsRoot(r.Header.Username) {
		return false
	}
	losesRole := r.Kind == dumplog.KindAuthUserDelete || r.Kind == dumplog.KindAuthUserRevokeRole
	return r.Auth != nil && !(losesRole && r.Auth.User == r.Header.Username)
}

// permits reports whether auth certainly permitted a request at an entry. keysOf gives the keys of a lease there. If it
// is nil, they are not known, and a put with a lease counts only while auth is off, or for users with role root.
func (e *endAuth) permits(r *dumplog.Request, index uint64, keysOf func(lease int64) []string) bool {
	if e == nil || index <= e.since {
		return false
	}
	leased := false
	if keysOf == nil {
		keysOf = func(int64) []string { leased = true; return nil }
	}
	rights := apply.Rights{Auth: e.state, KeysOf: keysOf, KeepsRanges: release.Yes}
	var v apply.Verdict
	switch {
	case !e.state.Enabled:
		return true
	case r.Header.AuthRevision < e.state.Revision:
		return false
	case e.state.IsRoot(r.Header.Username):
		return true
	case r.Kind == dumplog.KindPut && r.Put != nil:
		v = rights.Put(r.Header, r.Put)
	case r.Kind == dumplog.KindDeleteRange && r.DeleteRange != nil:
		v = rights.Delete(r.Header, r.DeleteRange)
	case r.Kind == dumplog.KindTxn && r.Txn != nil:
		v = rights.Txn(r.Header, r.Txn)
	default:
		return false
	}
	return !v.Refused() && !leased
}

// passesAuth reports whether the member's auth cannot have refused a request at an entry. Either auth was never on; or
// user root sent it with an auth revision that the member did not exceed there; or the auth of the end permits it, and
// no entry after it has changed auth. See permits for keysOf.
func (lv *logView) passesAuth(r *dumplog.Request, index uint64, keysOf func(lease int64) []string) bool {
	h, a := r.Header, &lv.m.DB.Auth
	most := a.Revision
	if lv.endAuth != nil {
		most = lv.endAuth.atMost(index)
	}
	switch {
	case !a.Enabled && a.Revision <= 1:
		return h.AuthRevision == 0
	case h.Username == apply.Root && a.HasRevision && h.AuthRevision >= most:
	case !lv.endAuth.permits(r, index, keysOf):
		return false
	}
	// A received snapshot can have brought a lower revision than the member's own.
	return !slices.ContainsFunc(received(lv.m), func(to uint64) bool { return to >= index })
}

// passes reports whether the member's auth cannot have refused the request of the entry being judged.
func (su *subject) passes(r *dumplog.Request) bool {
	var keysOf func(lease int64) []string
	if su.met && su.KeysKnown && su.Keys.Unsure() == 0 {
		keysOf = su.Keys.OfLease
	}
	return su.passesAuth(r, su.now, keysOf) || su.stampShows(r)
}

// stampShows reports whether auth cannot have refused a request of user root: an entry before it took effect although
// its header has no higher auth revision, and since then no entry can have changed auth, and no member was started.
func (su *subject) stampShows(r *dumplog.Request) bool {
	at, h := su.res.AuthAtMost, r.Header
	return h.Username == apply.Root && at.Index > su.lastStart && h.AuthRevision >= at.AuthRevision && !su.authMoved
}
