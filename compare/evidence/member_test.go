package evidence

import (
	"testing"

	"github.com/etcd-medic/etcd-medic/dumpdb"
	"github.com/etcd-medic/etcd-medic/dumplog"
	"github.com/etcd-medic/etcd-medic/release"
)

// TestTermAt: a log knows the terms of its own entries, and of no other index.
func TestTermAt(t *testing.T) {
	w := WAL{LastByTerm: []TermEnd{{Term: 2, First: 10, Last: 19}, {Term: 5, First: 20, Last: 20}}}
	for index, want := range map[uint64]uint64{0: 0, 9: 0, 10: 2, 19: 2, 20: 5, 21: 0} {
		if got := w.TermAt(index); got != want {
			t.Errorf("term of entry %d is %d, want %d", index, got, want)
		}
	}
}

// TestHighestTerm: entries, snapshot records and the HardState all name terms, and the highest of them counts.
func TestHighestTerm(t *testing.T) {
	if got := (&Member{}).HighestTerm(); got != 0 {
		t.Errorf("without a log: %d", got)
	}
	for name, c := range map[string]struct{ entries, snapshot, state, want uint64 }{
		"entries": {7, 3, 5, 7}, "a snapshot": {3, 7, 5, 7}, "the HardState": {3, 5, 7, 7},
	} {
		m := &Member{WAL: WAL{Log: &dumplog.Log{}, Summary: dumplog.Summary{LastTerm: c.entries,
			Snapshots: []dumplog.SnapshotRecord{{Term: c.snapshot}}, HardState: &dumplog.HardState{Term: c.state}}}}
		if got := m.HighestTerm(); got != c.want {
			t.Errorf("%s: %d, want %d", name, got, c.want)
		}
	}
}

// TestIndexFrozen: meta/term above all terms of the log stops the index only where there is something to store.
func TestIndexFrozen(t *testing.T) {
	for name, c := range map[string]struct {
		term, index, commit, last uint64
		want                      bool
	}{
		"committed entries above the index": {9, 40, 50, 50, true},
		"nothing above the index":           {9, 50, 50, 50, false},
		"the term of the log":               {5, 40, 50, 50, false},
		"a commit index without entries":    {9, 40, 50, 40, false},
		"a log without entries":             {9, 40, 50, 0, false},
	} {
		m := &Member{DB: &DB{Meta: dumpdb.MetaBucket{Term: &c.term, ConsistentIndex: &c.index}},
			WAL: WAL{Log: &dumplog.Log{}, Summary: dumplog.Summary{LastTerm: 5, LastIndex: c.last,
				HardState: &dumplog.HardState{Term: 5, Commit: c.commit}}}}
		if got := m.IndexFrozen(); got != c.want {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
	if (&Member{}).IndexFrozen() {
		t.Error("a source without a database has a stopped index")
	}
}

// TestOverrideConsistentIndex: an index that contradicts the logs is replaced in everything that follows from it, and
// the stored one can be had back.
func TestOverrideConsistentIndex(t *testing.T) {
	stored := uint64(900)
	m := &Member{Source: &Source{}, NodeName: "node1", Version: Version{Minor: 6, Text: "3.6.x"},
		DB: &DB{Meta: dumpdb.MetaBucket{ConsistentIndex: &stored}},
		WAL: WAL{Log: &dumplog.Log{}, Summary: dumplog.Summary{FirstIndex: 1, LastIndex: 50,
			HardState: &dumplog.HardState{Term: 2, Commit: 45}}}}
	m.OverrideConsistentIndex(40)
	if !m.HasIndexOverride() || m.ConsistentIndex() != 40 || m.StoredIndex() != 900 || m.Commit != 45 ||
		m.AppliedMin != 40 || m.NodeName != "node1" {
		t.Errorf("index %d, stored %d, committed %d, applied %d, name %q", m.ConsistentIndex(), m.StoredIndex(),
			m.Commit, m.AppliedMin, m.NodeName)
	}
	m.OverrideConsistentIndex(0)
	if m.HasIndexOverride() || m.ConsistentIndex() != 900 || m.Commit != 900 || m.AppliedMin != 900 {
		t.Errorf("back: index %d, committed %d, applied %d", m.ConsistentIndex(), m.Commit, m.AppliedMin)
	}
}

// TestUnreadableParts: damage that hides all buckets is not an empty database, and segments of two members are not one
// log.
func TestUnreadableParts(t *testing.T) {
	damage := []*dumpdb.DamageError{{Kind: dumpdb.DamageMeta}}
	for name, c := range map[string]struct {
		db   *DB
		want bool
	}{
		"no database":               {nil, false},
		"a file that does not open": {&DB{Damage: damage}, false},
		"an empty database":         {&DB{Handle: &dumpdb.DB{}}, false},
		"all buckets hidden":        {&DB{Handle: &dumpdb.DB{}, Damage: damage}, true},
		"one bucket left": {&DB{Handle: &dumpdb.DB{}, Damage: damage, Buckets: []dumpdb.Bucket{{Name: "key"}}},
			false},
	} {
		m := &Member{DB: c.db}
		if got := m.RootUnreadable(); got != c.want {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
		if m.CurrentRevision() != 0 || m.CompactRevision() != -1 {
			t.Errorf("%s: revision %d, compacted at %d", name, m.CurrentRevision(), m.CompactRevision())
		}
	}
	for kind, want := range map[dumplog.DamageKind]bool{dumplog.DamageMixed: true, dumplog.DamageCRC: false} {
		m := &Member{WAL: WAL{Summary: dumplog.Summary{Damage: []*dumplog.DamageError{{Kind: kind}}}}}
		if m.MixedLog() != want {
			t.Errorf("damage %s: mixed %v", kind, m.MixedLog())
		}
	}
}

// TestWroteBy: each mark in the files names the minor version that wrote them, the newest kind of mark first. A restore
// by a newer tool leaves meta/term in the database of an older server.
func TestWroteBy(t *testing.T) {
	term := func(n uint64) *uint64 { return &n }
	index := uint64(30)
	high := []TermEnd{{Term: 1, First: 1, Last: 5}, {Term: 4, First: 6, Last: 40}}
	conf := []dumplog.SnapshotRecord{{Index: 3, Term: 1, ConfState: &dumplog.ConfState{}}}
	for name, c := range map[string]struct {
		storage, cluster string
		term             *uint64
		terms            []TermEnd
		snapshots        []dumplog.SnapshotRecord
		want             string
	}{
		"nothing":                               {want: ""},
		"a storage version":                     {storage: "3.6.0", cluster: "3.5.0", term: term(4), want: "3.6.x"},
		"a term":                                {term: term(4), want: "3.5.x"},
		"a term and an older cluster version":   {cluster: "3.4.0", term: term(4), want: "3.5.x"},
		"a term and a newer cluster version":    {cluster: "3.7.0", term: term(4), want: "3.7.x"},
		"a cluster version":                     {cluster: "3.4.0", want: "3.4.x"},
		"a cluster version that is none":        {cluster: "2.3.8", want: ""},
		"a ConfState in the log":                {snapshots: conf, want: "3.5.x"},
		"a ConfState and a newer cluster":       {cluster: "3.6.0", snapshots: conf, want: "3.6.x"},
		"a restore, and an old server after it": {cluster: "3.4.0", term: term(1), terms: high, want: "3.4.x"},
		"a restore, and a snapshot after it": {cluster: "3.4.0", term: term(1), want: "3.4.x",
			snapshots: []dumplog.SnapshotRecord{{Index: 30, Term: 4}}},
		"a restore that nothing followed": {cluster: "3.4.0", term: term(1), terms: high[:1], want: "3.5.x"},
		"a snapshot that is not applied": {cluster: "3.4.0", term: term(1), want: "3.5.x",
			snapshots: []dumplog.SnapshotRecord{{Index: 31, Term: 4}}},
	} {
		m := &Member{DB: &DB{Meta: dumpdb.MetaBucket{StorageVersion: c.storage, Term: c.term, ConsistentIndex: &index},
			Cluster: dumpdb.Cluster{Version: c.cluster}},
			WAL: WAL{Log: &dumplog.Log{}, LastByTerm: c.terms, Summary: dumplog.Summary{Snapshots: c.snapshots}}}
		if v := fingerprint(m); v.Text != c.want || (v.Because == "") != (v.Text == "") {
			t.Errorf("%s: %q because %q, want %q", name, v.Text, v.Because, c.want)
		}
	}
}

// TestVersionRules: a version that is not known neither may follow a rule nor may lack it.
func TestVersionRules(t *testing.T) {
	for minor, want := range map[int][3]bool{0: {}, 4: {false, false, true}, 6: {true, true, false}} {
		v, r := Version{Minor: minor}, release.StorageVersion
		if got := [3]bool{v.Follows(r), v.MayFollow(r), v.MayLack(r)}; got != want {
			t.Errorf("3.%d: follows, may follow, may lack: %v, want %v", minor, got, want)
		}
	}
}
