package replay

import (
	"iter"
	"slices"
	"testing"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"

	"github.com/etcd-medic/etcd-medic/compare/evidence/clustertest"
	"github.com/etcd-medic/etcd-medic/dumplog"
)

// TestFollow: revisions are a stretch of the log executed again where every plain put of it stands there in order; what
// has conditions, or with auth on came without a user, may be without effect.
func TestFollow(t *testing.T) {
	rows := []row{rec(9, 0, "a", "1"), rec(10, 0, "b", "1"), rec(11, 0, "end", "1")}
	fresh := txn(cmpMod("x", 0), []dumplog.RequestOp{putOp("x", "1")}, nil)
	for name, c := range map[string]struct {
		log  []*dumplog.Request
		auth bool
		from uint64
		n    int
		last uint64
	}{
		"puts": {log: []*dumplog.Request{put("a", "1"), put("b", "1")}, from: 1, n: 2, last: 2},
		"from the second on": {log: []*dumplog.Request{put("z", "1"), put("a", "1"), put("b", "1")}, from: 2,
			n: 2, last: 3},
		"a put that is not there": {log: []*dumplog.Request{put("a", "1"), put("z", "1"), put("b", "1")}, from: 1},
		"the same with auth on": {log: []*dumplog.Request{put("a", "1"), put("z", "1"), put("b", "1")},
			auth: true, from: 1, n: 2, last: 3},
		"a transaction without": {log: []*dumplog.Request{put("a", "1"), fresh, put("b", "1")}, from: 1, n: 2,
			last: 3},
		"a delete without": {log: []*dumplog.Request{put("a", "1"), del("z", ""), put("b", "1")}, from: 1,
			n: 2, last: 3},
		"it does not come to the end": {log: []*dumplog.Request{put("a", "1")}, from: 1},
		"other entries between": {log: []*dumplog.Request{put("a", "1"), {Kind: dumplog.KindRange},
			put("b", "1")}, from: 1, n: 2, last: 3},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, 4, -1, rows...)
			b.sim.past = func(from uint64) iter.Seq2[*item, error] {
				return func(yield func(*item, error) bool) {
					for _, it := range itemsOf(c.log...) {
						if it.entry.Index >= from && !yield(it, nil) {
							return
						}
					}
				}
			}
			if c.auth {
				b.sim.Auth = rooted()
			}
			run, n := b.sim.matcher.follow(c.from, uint64(len(c.log)+1),
				func(g *group) bool { return g != nil && g.records[0].key == "end" })
			if n != c.n || n > 0 && (run.From != c.from || run.To != c.last) {
				t.Errorf("%d revisions, %+v", n, run)
			}
		})
	}
}

// TestStampsOfUnknownProposers: a request ID that fits no member, or several, tells nothing of anybody's auth revision.
func TestStampsOfUnknownProposers(t *testing.T) {
	s := newStory("3.5.0")
	s.EnableAuth()
	at := s.Add(clustertest.Step{User: "root", By: 1, AuthRevision: 8, Req: putRequest("a", "1", 0)})
	s.Add(clustertest.Step{User: "root", By: 77, AuthRevision: 8, Req: putRequest("a", "1", 0)})
	s.Add(clustertest.Step{User: "root", By: 1, AuthRevision: 8, Req: putRequest("a", "1", 0)})
	r := run(t, open(t, s.Write(t, t.TempDir())...), Options{})
	got := r.Survey.Stamps
	if want := []Stamp{{Index: s.Index(at), AuthRevision: 8}}; len(got) != 1 ||
		!slices.Equal(got[dumplog.ID(s.ID(1))], want) {
		t.Errorf("%+v, want %+v of node2 only", got, want)
	}
}

// TestDisputedStamp: of two auth revisions on one entry, of which one was altered, neither is the proposer's. Of two
// terms the entry that was replaced says nothing, and the other all the same.
func TestDisputedStamp(t *testing.T) {
	stamped := func(term, revision uint64) *item {
		it := itemAt(7, &dumplog.Request{Kind: dumplog.KindPut, Header: dumplog.Header{AuthRevision: revision}})
		it.entry.Term = term
		return it
	}
	for name, c := range map[string]struct {
		other *item
		noted bool
	}{
		"no other":                 {nil, true},
		"the same revision":        {stamped(2, 8), true},
		"another":                  {stamped(2, 20), false},
		"another, in another term": {stamped(1, 20), true},
	} {
		it := stamped(2, 8)
		if c.other != nil {
			it.others = map[int]*item{1: c.other}
		}
		if got := !it.stampDisputed(); got != c.noted {
			t.Errorf("%s: noted %t", name, got)
		}
	}
}

// TestDroppedAndApplied: a write of an entry that was replaced is found among the revisions that nobody explains, by
// key and value.
func TestDroppedAndApplied(t *testing.T) {
	s := newStory("3.5.0")
	s.put("a", "1") // 2
	s.put("b", "1") // 3
	s.wrote(&pb.InternalRaftRequest{DeleteRange: &pb.DeleteRangeRequest{Key: []byte("a")}})
	m := open(t, s.Write(t, t.TempDir())...).Members[0]
	dropped := func() []Forced {
		of := func(key, value string) Dropped {
			return Dropped{Index: 9, What: key, put: true, hash: contentHash([]byte(key), []byte(value))}
		}
		return []Forced{{Dropped: []Dropped{of("b", "2"), of("b", "1"), of("a", "1"), {Index: 10, What: "no put"}}}}
	}
	for _, c := range []struct {
		extra []int64
		want  []int64
	}{{nil, nil}, {[]int64{3}, []int64{3}}, {[]int64{2, 3, 4}, []int64{2, 3}}, {[]int64{4}, nil}} {
		runs := dropped()
		if err := appliedAfterAll(&MemberResult{Member: m, Extra: c.extra}, runs); err != nil {
			t.Fatal(err)
		}
		var got []int64
		for _, d := range runs[0].Applied {
			got = append(got, d.Rev)
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("of %v: %v, want %v", c.extra, got, c.want)
		}
	}
}
