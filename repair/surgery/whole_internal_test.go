package surgery

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/compare/evidence/clustertest"
	"github.com/etcd-medic/etcd-medic/compare/evidence/evidencetest"
	"github.com/etcd-medic/etcd-medic/dumplog"
	"github.com/etcd-medic/etcd-medic/repair/datadir"
)

// opened is a change of the first of these sources next to the others. The sources must be as before.
func opened(t *testing.T, where ...string) *work {
	t.Helper()
	evidencetest.Unchanged(t, where...)
	var specs []evidence.Spec
	for _, w := range where {
		specs = append(specs, evidence.Spec{Name: filepath.Base(w), Where: w})
	}
	set, err := evidence.Open(t.Context(), specs, evidence.Options{Deep: true, NoHashes: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = set.Close() }) // only read
	out, err := datadir.Begin(filepath.Join(t.TempDir(), "new"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(out.Abandon)
	w := &work{o: &Options{}, set: set, out: out, report: &Report{Source: specs[0].Name}, snaps: map[string][]byte{}}
	w.parts = w.source().Source.Parts()
	return w
}

// restored writes a member of a cluster that was restored, so that its log alone does not give a database: entries up
// to 9 and a raft snapshot at 7. Its database has applied the entries up to index; 0 leaves it out.
func restored(t *testing.T, name string, cluster, index uint64) string {
	t.Helper()
	id := uint64(0xa0) + uint64(name[len(name)-1]-'0')
	h := clustertest.NewHand(t, t.TempDir(), name, id, cluster)
	h.Found(true, 0xa1, 0xa2, 0xa3)
	for i := uint64(4); i <= 9; i++ {
		h.Request(2, i, nil)
	}
	h.State(2, 0xa1, 9)
	h.Snapshot(2, 7, 0xa1, 0xa2, 0xa3)
	dir := h.Close(index, 2)
	if index == 0 {
		if err := os.Remove(filepath.Join(dir, "member", "snap", "db")); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// TestDatabaseWithinTheLog: in place of a database that cannot be read, that of another member is taken if it is sound,
// of the same cluster, and at an entry from which the member's own log continues.
func TestDatabaseWithinTheLog(t *testing.T) {
	for name, c := range map[string]struct {
		peers  []string
		change func(*work)
		took   string
	}{
		"alone":             {nil, nil, ""},
		"the last entry":    {[]string{restored(t, "node2", 0xc1, 9)}, nil, "node2, which is at entry 9 of"},
		"the raft snapshot": {[]string{restored(t, "node2", 0xc1, 7)}, nil, "node2, which is at entry 7 of"},
		"before it":         {[]string{restored(t, "node2", 0xc1, 6)}, nil, ""},
		"after the log":     {[]string{restored(t, "node2", 0xc1, 10)}, nil, ""},
		"another cluster":   {[]string{restored(t, "node2", 0xc2, 9)}, nil, ""},
		"no database":       {[]string{restored(t, "node2", 0xc1, 0)}, nil, ""},
		"the second": {[]string{restored(t, "node2", 0xc1, 6), restored(t, "node3", 0xc1, 8)}, nil,
			"node3, which is at entry 8 of"},
		"damaged keys": {[]string{restored(t, "node2", 0xc1, 9)},
			func(w *work) { w.peers()[0].DB.KVDamaged = true }, ""},
		"no raft snapshot, before it": {[]string{restored(t, "node2", 0xc1, 6)},
			func(w *work) { w.source().Snap.Files = nil }, "node2, which is at entry 6 of"},
		"no raft snapshot, no entry": {[]string{restored(t, "node2", 0xc1, 6)}, func(w *work) {
			w.source().Snap.Files, w.peers()[0].DB.Meta.ConsistentIndex = nil, new(uint64)
		}, ""},
	} {
		w := opened(t, append([]string{restored(t, "node1", 0xc1, 0)}, c.peers...)...)
		if c.change != nil {
			c.change(w)
		}
		says, from := "", "7"
		if c.took == "" {
			if strings.HasPrefix(name, "no raft") {
				from = "1"
			}
			says = "no other member's database is between entries " + from + " and 9"
		}
		wantRefusal(t, name, makeWhole(t.Context(), w, DB{}), "", says)
		_, err := os.Stat(w.dbPath())
		if got := strings.Join(w.report.Did, "\n"); !strings.Contains(got, c.took) || (got == "") != (c.took == "") ||
			(err == nil) != (c.took != "") {
			t.Errorf("%s: did %q, %v", name, got, err)
		}
	}
}

// TestExecutedUpToTheRaftSnapshot: what a raft snapshot has is committed, also where no HardState says so. Only where
// the log cannot give a database are those of other members tried, and not where the disk fails.
func TestExecutedUpToTheRaftSnapshot(t *testing.T) {
	w := opened(t, restored(t, "node1", 0xc1, 0), restored(t, "node2", 0xc1, 9))
	w.source().WAL.Summary.MaxCommit = 0
	if err := (DB{}).executed(t.Context(), w, 0); err == nil || !strings.Contains(err.Error(), "what was committed") {
		t.Errorf("to no entry: %v", err)
	}
	w.set.Members = w.set.Members[:1]
	if err := makeWhole(t.Context(), w, DB{}); err == nil || strings.Contains(err.Error(), "what was committed") {
		t.Errorf("to the raft snapshot: %v", err)
	}
	w.set.Members = w.set.Members[:2]
	if err := os.Mkdir(filepath.Join(w.out.Path, ".executed"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := makeWhole(t.Context(), w, DB{}); !errors.Is(err, fs.ErrExist) || len(w.report.Did) > 0 {
		t.Errorf("no folder can be made: %v, did %q", err, w.report.Did)
	}
}

// TestNothingToMakeItOf: a database is made again only in a data dir whose log has no damage.
func TestNothingToMakeItOf(t *testing.T) {
	const unknown = "it is unknown which entries its database has"
	sound := evidence.WAL{Log: &dumplog.Log{}}
	damaged := sound
	damaged.Summary.Damage = []*dumplog.DamageError{{Kind: dumplog.DamageCRC}}
	for name, c := range map[string]struct {
		kind evidence.Kind
		wal  evidence.WAL
		says string
	}{
		"a file":        {evidence.KindDB, evidence.WAL{}, unknown},
		"a log folder":  {evidence.KindWAL, sound, unknown},
		"no log":        {evidence.KindDataDir, evidence.WAL{}, unknown},
		"a damaged log": {evidence.KindDataDir, damaged, "from which one could be made, is damaged"},
		"an empty log":  {evidence.KindDataDir, sound, "the log does not show what was committed"},
	} {
		w := workOn(0)
		w.source().Source.Kind, w.source().WAL = c.kind, c.wal
		wantRefusal(t, name, makeWhole(t.Context(), w, DB{}), "", c.says)
	}
}

// TestPreviousTransactionBeforeTheLog: a member goes back one transaction only if its log still has the entry after it,
// or if a raft snapshot that it has applied covers what is missing.
func TestPreviousTransactionBeforeTheLog(t *testing.T) {
	w := opened(t, restored(t, "node1", 0xc1, 9))
	w.source().Version.Minor = 5
	for name, c := range map[string]struct {
		first, was uint64
		says       string
	}{
		"the log continues":        {6, 5, ""},
		"an entry is missing":      {7, 5, "the log begins at 7, the previous transaction ends at 5"},
		"the raft snapshot":        {9, 7, ""},
		"before the raft snapshot": {9, 6, "the log begins at 9, the previous transaction ends at 6"},
	} {
		w.source().WAL.Summary.FirstIndex = c.first
		wantRefusal(t, name, previousLoss(w, c.was, 9), "", c.says)
	}
}

// TestListOfRaft: raft's own list goes into the buckets without consent only if no conf change can be missing from it,
// and if no other member that has come as far has other voters.
func TestListOfRaft(t *testing.T) {
	dirs := clustertest.Synth{Members: 2, Entries: 10, Keys: 3, Value: 10}.Write(t, t.TempDir())
	for name, c := range map[string]struct {
		change func(m, p *evidence.Member)
		flag   string
		says   string
	}{
		"alike":          {func(_, _ *evidence.Member) {}, "", ""},
		"in other order": {func(_, p *evidence.Member) { slices.Reverse(p.Membership.Voters) }, "", ""},
		"other voters": {func(_, p *evidence.Member) { p.Membership.Voters = nil }, AcceptDivergence,
			"knows other voters"},
		"further": {func(m, p *evidence.Member) { p.Membership.Voters, p.Commit = nil, m.Commit+1 },
			AcceptDivergence, "knows other voters"},
		"not as far": {func(m, p *evidence.Member) { p.Membership.Voters, p.Commit = nil, m.Commit-1 }, "", ""},
		"not known there": {func(_, p *evidence.Member) { p.Membership.Voters, p.Membership.RaftKnown = nil, false },
			"", ""},
		"not known": {func(m, _ *evidence.Member) { m.Membership.RaftKnown = false }, "", "shows no ConfState"},
		"a log that ends": {func(m, _ *evidence.Member) { m.Commit = m.LastIndex() + 5 }, AcceptDivergence,
			"conf changes can be missing"},
		"no voters": {func(m, _ *evidence.Member) { m.Membership.Voters = nil }, "",
			"does not show who the voters are"},
	} {
		for _, accepted := range []bool{false, true} {
			w := opened(t, dirs...)
			c.change(w.source(), w.peers()[0])
			says := c.says
			if accepted && c.flag != "" {
				w.o.Accept, says = []string{c.flag}, ""
			}
			edits, err := setMembers(t.Context(), &Meta{MembersFromRaft: true}, w)
			wantRefusal(t, name, err, c.flag, says)
			state, err2 := setConfState(t.Context(), &Meta{ConfStateFromRaft: true}, w)
			wantRefusal(t, name, err2, c.flag, says)
			did := []string{"buckets members and members_removed carry raft's own list: 2 members, 0 removed",
				"meta/confState carries raft's own list: 2 voters, 0 learners"}
			if done := says == ""; (len(edits) == 1) != done || (len(state) == 1) != done ||
				done && !slices.Equal(w.report.Did, did) {
				t.Errorf("%s, accepted %v: %d and %d edits, did %q", name, accepted, len(edits), len(state),
					w.report.Did)
			}
		}
	}
}

// TestChangesState: entries that change the database are those that the index must not skip, nor count twice.
func TestChangesState(t *testing.T) {
	for _, k := range []dumplog.Kind{dumplog.KindEmpty, dumplog.KindRange, dumplog.KindAuthenticate,
		dumplog.KindAuthStatus, dumplog.KindAuthUserGet, dumplog.KindAuthUserList, dumplog.KindAuthRoleGet,
		dumplog.KindAuthRoleList, dumplog.KindV2, dumplog.KindClusterMemberAttrSet, dumplog.KindClusterVersionSet,
		dumplog.KindDowngradeVersionTest} {
		if changesState(&dumplog.Request{Kind: k}) {
			t.Errorf("%s changes nothing that is compared", k)
		}
	}
	for _, k := range []dumplog.Kind{dumplog.KindPut, dumplog.KindTxn, dumplog.KindDeleteRange, dumplog.KindCompaction,
		dumplog.KindLeaseGrant, dumplog.KindLeaseRevoke, dumplog.KindAlarm, dumplog.KindAuthEnable,
		dumplog.KindAuthUserAdd, dumplog.KindConfChange, dumplog.KindUnknown} {
		if !changesState(&dumplog.Request{Kind: k}) {
			t.Errorf("%s changes the database", k)
		}
	}
}
