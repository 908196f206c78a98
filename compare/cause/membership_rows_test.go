package cause_test

import (
	"fmt"
	"path/filepath"
	"testing"

	"go.etcd.io/bbolt"
	"go.etcd.io/raft/v3/raftpb"

	"github.com/etcd-medic/etcd-medic/compare/evidence/clustertest"
)

// urlsOf is the update of a member's peer URLs.
func urlsOf(id, request uint64, url string) raftpb.ConfChange {
	return raftpb.ConfChange{ID: clustertest.RequestID(a1, begin1, request), Type: raftpb.ConfChangeUpdateNode,
		NodeID: id, Context: fmt.Appendf(nil, `{"id":%d,"peerURLs":[%q]}`, id, url)}
}

// own is the peer URL with which a member was founded.
func own(id uint64) string { return fmt.Sprintf("http://127.0.0.1:%d", id) }

// rows tells of a cluster on data of a version with changes of member a2's URLs in its log; the databases at the
// positions hold the row.
func rows(storage string, row string, changes []raftpb.ConfChange, pos ...int) func(t *testing.T, root string) {
	return func(t *testing.T, root string) {
		t.Helper()
		s := bootstrap(t, root)
		for _, cc := range changes {
			s.on(func(h *clustertest.Hand, index uint64) { h.Conf(s.term, index, cc) })
		}
		s.puts(3)
		if storage != "" {
			for _, h := range s.hands {
				h.Versions(storage)
			}
		}
		s.done()
		if row == "" {
			return
		}
		for _, p := range pos {
			editDB(func(tx *bbolt.Tx) error {
				return tx.Bucket([]byte("members")).Put(fmt.Appendf(nil, "%x", a2), []byte(row))
			})(t, filepath.Join(s.hands[p].Dir, "member"))
		}
	}
}

// TestMemberRows: a row of bucket members that the log contradicts, on one member or alike on all, and the values that
// servers leave there without anything being wrong.
func TestMemberRows(t *testing.T) {
	member := func(url, name, client string) string {
		return fmt.Sprintf(`{"id":%d,"peerURLs":[%q],"name":%q,"clientURLs":[%q]}`, a2, url, name, client)
	}
	const moved, client = "http://127.0.0.1:9999", "http://127.0.0.1:2379"
	to := func(urls ...string) (out []raftpb.ConfChange) {
		for i, u := range urls {
			out = append(out, urlsOf(a2, uint64(300+i), u))
		}
		return out
	}
	name := clustertest.HandName(a2)
	all := []int{0, 1, 2}
	bad := func(name string, tell func(t *testing.T, root string), checks ...string) tale {
		return tale{name: name, tell: tell, class: "membership", checks: append(checks, "M16")}
	}
	fine := func(name string, tell func(t *testing.T, root string)) tale {
		return tale{name: name, tell: tell, class: "healthy", holds: []string{"M16"}}
	}
	warned := func(name string, tell func(t *testing.T, root string)) tale {
		return tale{name: name, tell: tell, class: "healthy", checks: []string{"M16"}}
	}
	runTales(t, []tale{
		fine("as founded", rows("3.6.0", "", nil)),
		bad("another URL alike on all", rows("3.6.0", member(moved, name, client), nil, all...)),
		bad("another URL on 3.5", rows("", member(moved, name, client), nil, all...)),
		{name: "another URL on one", tell: rows("3.6.0", member(moved, name, client), nil, 1), class: "membership",
			cause: "rows-changed-outside-the-log", certainty: "proof", checks: []string{"M02", "M16"}},
		bad("another URL than the update", rows("3.6.0", member("http://127.0.0.1:1", name, client), to(moved),
			all...)),
		fine("as updated", rows("3.6.0", member(moved, name, client), to(moved), all...)),
		warned("as before the update on 3.6", rows("3.6.0", member(own(a2), name, client), to(moved), all...)),
		fine("as before the update on 3.5", rows("", member(own(a2), name, client), to(moved), all...)),
		fine("the update was refused", rows("3.6.0", member(own(a2), name, client), to(own(a3)), all...)),
		fine("a forced start added it", rows("3.6.0", member(own(a2), name, client),
			[]raftpb.ConfChange{{Type: raftpb.ConfChangeAddNode, NodeID: a2,
				Context: fmt.Appendf(nil, `{"id":%d,"peerURLs":["http://localhost:2380","http://localhost:7001"]}`,
					a2)}},
			all...)),
		bad("another name", rows("3.6.0", member(own(a2), "other", client), nil, all...)),
		bad("other client URLs", rows("3.6.0", member(own(a2), name, moved), nil, all...)),
		fine("no name", rows("", fmt.Sprintf(`{"id":%d,"peerURLs":[%q]}`, a2, own(a2)), nil, all...)),
		fine("not applied yet", func(t *testing.T, root string) {
			t.Helper()
			s := bootstrap(t, root)
			s.commit()
			s.list(s.ids...)
			applied := s.index
			s.on(func(h *clustertest.Hand, index uint64) { h.Conf(s.term, index, urlsOf(a2, 300, moved)) })
			s.commit()
			for _, h := range s.hands {
				h.Close(applied, s.term)
			}
		}),
	})
}
