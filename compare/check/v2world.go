package check

import (
	"slices"
	"sort"
	"strings"

	"github.com/etcd-medic/etcd-medic/compare/apply"
	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/dumplog"
	"github.com/etcd-medic/etcd-medic/release"
)

// v2World is a v2 store as it results from the log: members, removed members, cluster version and the keys of clients.
type v2World struct {
	members map[dumplog.ID]*dumplog.V2Member
	// list has the same members in the form that package apply needs to judge conf changes.
	list    *apply.Members
	version string
	keys    map[string]bool
	// folders are those that a put made. A folder stays when its last key is deleted, and is a leaf of the store then.
	folders map[string]bool
	// unsure are rows of the member list that the log does not determine, doubts are paths of keys that it does not
	// determine, with everything below them. mayExpire are keys of the first snapshot, which may have had a time to
	// live.
	unsure map[string]bool
	// published are the members whose attributes are in the log: a member publishes its name and client URLs at its
	// start, not with its addition.
	published map[dumplog.ID]bool
	doubts    []string
	mayExpire map[string]bool
	// restored is true for the empty store of a restore. Its database has a cluster version and removed members that
	// the log does not name; 3.6 and later build the store from them.
	restored bool
}

func newV2World(v release.Version) *v2World {
	return &v2World{members: map[dumplog.ID]*dumplog.V2Member{}, list: apply.NewMembers(v),
		published: map[dumplog.ID]bool{}, keys: map[string]bool{}, folders: map[string]bool{},
		unsure:    map[string]bool{},
		mayExpire: map[string]bool{}}
}

// begin loads the newest older snapshot that the member's log reaches back to, or the empty store before the first
// entry. It returns the index after which the log continues, or the reason why there is no beginning.
func (w *v2World) begin(m *evidence.Member) (uint64, string) {
	if !m.HasLog() || len(m.WAL.Summary.Damage) > 0 {
		return 0, "there is no sound log to compare the v2 store with"
	}
	newest, s := m.NewestSnap(), m.WAL.Summary
	if slices.ContainsFunc(s.Jumps, func(j dumplog.Jump) bool { return j.From <= newest.Index }) {
		return w.beginAt(m, s.Jumps[len(s.Jumps)-1].To)
	}
	if s.FirstIndex == 1 && s.LastIndex >= newest.Index &&
		(s.Start == dumplog.StartBootstrap || s.Start == dumplog.StartRestore) {
		w.restored = s.Start == dumplog.StartRestore
		return 0, ""
	}
	return w.beginAt(m, s.FirstIndex-1)
}

// beginAt takes the newest older snapshot at or above an index.
func (w *v2World) beginAt(m *evidence.Member, lowest uint64) (uint64, string) {
	newest := m.NewestSnap()
	var old *dumplog.SnapFile
	for _, f := range m.Snap.Files {
		if f.Damage == nil && !f.Broken && f.V2 != nil && f.Index >= lowest && f.Index < newest.Index &&
			m.WAL.Summary.SnapshotAt(f.Term, f.Index) != nil && (old == nil || f.Index > old.Index) {
			old = f
		}
	}
	if old == nil || m.WAL.Summary.LastIndex < newest.Index {
		return 0, "the log reaches back neither to an older snapshot nor to its first entry"
	}
	w.load(old.V2)
	return old.Index, ""
}

// load begins with the store of a snapshot.
func (w *v2World) load(v *dumplog.V2Store) {
	for i := range v.Members {
		x := v.Members[i]
		w.members[x.ID], w.published[x.ID] = &x, x.Name != ""
		w.list.Set(x.ID, apply.Member{PeerURLs: x.PeerURLs, IsLearner: x.IsLearner})
	}
	for _, id := range v.Removed {
		w.list.Removed[id] = true
	}
	for _, k := range v.UserKeys {
		w.keys[k], w.mayExpire[k] = true, true
		w.foldersOf(k)
	}
	w.version = v.Version
}

// run executes the entries after index from up to index to.
func (w *v2World) run(in *Input, m *evidence.Member, from, to uint64) {
	type event struct {
		index uint64
		do    func()
	}
	var events []event
	at := func(index uint64, do func()) {
		if index > from && index <= to {
			events = append(events, event{index, do})
		}
	}
	for _, c := range in.Membership().confEntries(m) {
		at(c.Index, func() { w.confChange(&c.Change) })
	}
	s, pos := in.Replay.Survey, slices.Index(in.Members, m)
	for id := range s.Starts {
		for _, st := range s.StartsFor(pos, id) {
			at(st.Index, func() { w.publish(id, st.Name, st.ClientURLs) })
		}
	}
	for _, v := range s.VersionsFor(pos) {
		at(v.Index, func() { w.version = v.Version })
	}
	for _, op := range s.V2 {
		at(op.Index, func() { w.request(op.Req) })
	}
	sort.SliceStable(events, func(i, j int) bool { return events[i].index < events[j].index })
	for _, e := range events {
		e.do()
	}
}

func (w *v2World) publish(id dumplog.ID, name string, urls []string) {
	if x := w.members[id]; x != nil {
		x.Name, x.ClientURLs, w.published[id] = name, urls, true
	}
}

// confChange executes a conf change by the rules of the release. A refused change has no effect.
func (w *v2World) confChange(c *dumplog.ConfChange) {
	x, row := w.members[c.NodeID], "member "+c.NodeID.String()
	mayClear := w.list.UpdateClearsLearner(c).Possible()
	switch w.list.Apply(c) {
	case apply.NoContext:
		w.unsure[row] = true
		return
	case apply.TooManyLearners:
		if w.list.Version.Has(release.LearnerLimitOption).Excluded() {
			return
		}
		w.list.Take(c) // servers with a higher limit did, and the log does not show the limit
		w.unsure[row], w.unsure["removed "+c.NodeID.String()] = true, true
	case apply.Accepted:
	default:
		return
	}
	switch have, listed := w.list.Get(c.NodeID); {
	case !listed:
		delete(w.members, c.NodeID)
	case x == nil:
		w.members[c.NodeID] = &dumplog.V2Member{ID: c.NodeID, Name: c.Member.Name, PeerURLs: have.PeerURLs,
			IsLearner: have.IsLearner}
	default:
		x.PeerURLs, x.IsLearner = have.PeerURLs, have.IsLearner
		w.unsure[row] = w.unsure[row] || mayClear // whether the flag survives depends on the patch release
	}
}

// request executes plain puts and deletes. Other requests depend on more than the log: their path goes to doubts
// (api/v2store/store.go).
func (w *v2World) request(r *dumplog.V2Request) {
	if !strings.HasPrefix(r.Path, "/1/") {
		return
	}
	plain := r.PrevExist == nil && r.Refresh == nil && r.PrevIndex == 0 && r.PrevValue == "" && r.Expiration == 0 &&
		!r.Dir
	switch {
	case r.Method == "DELETE" && r.Recursive && r.PrevIndex == 0 && r.PrevValue == "":
		for k := range w.keys {
			if below(k, r.Path) {
				delete(w.keys, k)
			}
		}
	case r.Method == "DELETE" && plain:
		delete(w.keys, r.Path)
	case r.Method == "PUT" && plain && !w.crosses(r.Path):
		w.keys[r.Path] = true
		w.foldersOf(r.Path)
		delete(w.mayExpire, r.Path)
	default:
		w.doubts = append(w.doubts, r.Path)
	}
}

// foldersOf notes the folders above a key.
func (w *v2World) foldersOf(key string) {
	for i := strings.LastIndexByte(key, '/'); i > len("/1"); i = strings.LastIndexByte(key, '/') {
		key = key[:i]
		if w.folders[key] {
			return
		}
		w.folders[key] = true
	}
}

// crosses reports whether a known key is a folder above the path or is below it: then the server refuses the put.
func (w *v2World) crosses(path string) bool {
	for k := range w.keys {
		if k != path && (below(k, path) || below(path, k)) {
			return true
		}
	}
	return false
}

func below(key, path string) bool { return key == path || strings.HasPrefix(key, path+"/") }

// doubtful reports whether a request that the log does not decide touched the key or a folder above it.
func (w *v2World) doubtful(key string) bool {
	return slices.ContainsFunc(w.doubts, func(d string) bool { return below(key, d) || below(d, key) })
}

// rows renders the member list like the rows of a snapshot.
func (w *v2World) rows() map[string]string {
	out := map[string]string{}
	for id, x := range w.members {
		out["member "+id.String()] = w.memberText(x)
	}
	for id := range w.list.Removed {
		out["removed "+id.String()] = "removed"
	}
	if w.version != "" {
		out["version"] = w.version
	}
	return out
}

// memberText renders a row, with name and client URLs once the member has published them.
func (w *v2World) memberText(x *dumplog.V2Member) string {
	s := "peer URLs " + strings.Join(slices.Sorted(slices.Values(x.PeerURLs)), ",")
	if x.IsLearner {
		s += ", learner"
	}
	if w.published[x.ID] {
		s += ", name " + x.Name + ", client URLs " + strings.Join(slices.Sorted(slices.Values(x.ClientURLs)), ",")
	}
	return s
}
