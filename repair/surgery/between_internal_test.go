package surgery

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"go.etcd.io/etcd/api/v3/etcdserverpb"

	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/compare/evidence/clustertest"
	"github.com/etcd-medic/etcd-medic/dumpdb"
)

// TestChangedBetween: rows of a member at another index are taken only if the logs have every entry between the two,
// and none of them may write keys. A bucket that one of them may change is left out. Entries up to the lower index and
// after the higher one change nothing.
func TestChangedBetween(t *testing.T) {
	h := clustertest.NewHand(t, t.TempDir(), "node1", 0xa1, 0xc1)
	h.Found(false, 0xa1)
	h.Member(0xa1, false, true)
	h.Request(2, 2, nil)
	h.Put(2, 3, clustertest.RequestID(0xa1, 1000, 3), "k", "v", true)
	h.Request(2, 4, &etcdserverpb.InternalRaftRequest{LeaseGrant: &etcdserverpb.LeaseGrantRequest{ID: 7, TTL: 60}})
	h.Request(2, 5, nil)
	h.Request(2, 6, &etcdserverpb.InternalRaftRequest{AuthRoleAdd: &etcdserverpb.AuthRoleAddRequest{Name: "r"}})
	h.Put(2, 7, clustertest.RequestID(0xa1, 1000, 7), "k", "w", true)
	h.State(2, 0xa1, 7)
	w := opened(t, h.Close(7, 2), restored(t, "node2", 0xc2, 9)) // the second is of another cluster
	for name, c := range map[string]struct {
		own, other uint64
		change     func(p *evidence.Member)
		buckets    string
		keys       bool
	}{
		"the same entry":          {5, 5, nil, "", false},
		"an empty entry":          {4, 5, nil, "", false},
		"a lease":                 {3, 4, nil, "lease", false},
		"a lease, other order":    {5, 3, nil, "lease", false},
		"a lease and a role":      {3, 6, nil, "auth authRoles authUsers lease", false},
		"a put":                   {2, 3, nil, "", true},
		"a put after a role":      {5, 7, nil, "auth authRoles authUsers", true},
		"more than the log":       {7, 8, nil, "", true},
		"a part that the log has": {4, 9, func(*evidence.Member) {}, "auth authRoles authUsers", true},
		"of another cluster":      {4, 5, func(p *evidence.Member) { p.ClusterID = 0xc3 }, "", true},
		"the same of another":     {5, 5, func(p *evidence.Member) { p.ClusterID = 0xc3 }, "", false},
	} {
		w.source().DB.Meta.ConsistentIndex = &c.own
		p := &evidence.Member{Source: &evidence.Source{Name: "b"}, ClusterID: 0xc1,
			DB: &evidence.DB{Meta: dumpdb.MetaBucket{ConsistentIndex: &c.other}}}
		if c.change != nil {
			c.change(p)
		}
		buckets, keys, err := w.changedBetween(t.Context(), p)
		got := strings.Join(slices.Sorted(maps.Keys(buckets)), " ")
		if err != nil || keys != c.keys || got != c.buckets {
			t.Errorf("%s: buckets %q, keys %v, %v", name, got, keys, err)
		}
	}
}

// TestStorageVersionRules: a storage version is set only if a server writes it and starts on it, and removed without
// consent only if the cluster runs a line that knows none.
func TestStorageVersionRules(t *testing.T) {
	for name, c := range map[string]struct {
		was, to, cluster string
		change           func(*dumpdb.MetaBucket)
		flag, says       string
	}{
		"set":                      {"", "3.6.0", "3.6.0", nil, "", ""},
		"raised":                   {"3.6.0", "3.7.0", "3.7.0", nil, "", ""},
		"set already":              {"3.6.0", "3.6.0", "3.6.0", nil, "", `is "3.6.0" already`},
		"none already":             {"", "", "3.6.0", nil, "", `is "" already`},
		"removed":                  {"3.6.0", "", "3.5.0", nil, "", ""},
		"removed in 3.6":           {"3.6.0", "", "3.6.0", nil, AcceptDivergence, "servers of an older line"},
		"lowered":                  {"3.7.0", "3.6.0", "3.7.0", nil, AcceptDivergence, "servers of an older line"},
		"too low":                  {"", "3.5.0", "3.6.0", nil, "", `no server writes storage version "3.5.0"`},
		"too high":                 {"", "3.99.0", "3.6.0", nil, "", "no server writes"},
		"no version":               {"", "x", "3.6.0", nil, "", "no server writes"},
		"above the cluster":        {"", "3.7.0", "3.6.0", nil, "", "do not start on storage version 3.7.0"},
		"an unknown cluster":       {"", "3.6.0", "x", nil, "", "the cluster runs version x"},
		"removed, unknown cluster": {"3.6.0", "", "x", nil, "", ""},
		"no term": {"", "3.6.0", "3.6.0", func(m *dumpdb.MetaBucket) { m.Term = nil }, "",
			"without meta/term"},
		"no ConfState": {"", "3.6.0", "3.6.0", func(m *dumpdb.MetaBucket) { m.ConfState = nil }, "",
			"without meta/term"},
		"removed, without ConfState": {"3.6.0", "", "3.5.0", func(m *dumpdb.MetaBucket) { m.ConfState = nil }, "", ""},
	} {
		w := workOn(5)
		m := w.source()
		m.DB.Meta.StorageVersion, m.DB.Cluster.Version = c.was, c.cluster
		m.DB.Meta.Term, m.DB.Meta.ConfState = new(uint64), &dumpdb.ConfState{}
		if c.change != nil {
			c.change(&m.DB.Meta)
		}
		edits, err := setStorageVersion(t.Context(), &Meta{StorageVersion: &c.to}, w)
		wantRefusal(t, name, err, c.flag, c.says)
		if err == nil && len(edits) != 1 {
			t.Errorf("%s: %d edits", name, len(edits))
		}
	}
	if edits, err := setStorageVersion(t.Context(), &Meta{}, workOn(5)); err != nil || len(edits) > 0 {
		t.Errorf("not asked for: %d edits, %v", len(edits), err)
	}
}

// TestAuthRevisionAlready: a revision that is stored is not set again; a database that stores none gets one, also 0.
func TestAuthRevisionAlready(t *testing.T) {
	for _, stored := range []bool{false, true} {
		w := workOn(5)
		w.source().DB.Auth = dumpdb.Auth{Revision: 1, HasRevision: stored}
		one := uint64(1)
		edits, err := setAuthRevision(t.Context(), &Meta{AuthRevision: &one}, w)
		says, flag := "the log does not reach back far enough", AcceptDivergence
		if stored {
			says, flag = "the auth revision is 1 already", ""
		}
		wantRefusal(t, "revision 1", err, flag, says)
		if (len(edits) == 1) == stored {
			t.Errorf("stored %v: %d edits", stored, len(edits))
		}
	}
}
