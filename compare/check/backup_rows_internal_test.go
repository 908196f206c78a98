package check

import (
	"slices"
	"strings"
	"testing"

	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/dumpdb"
)

// soundBackup has the buckets, member list, users and marks that a server of 3.6 writes.
func soundBackup() *evidence.Member {
	m := member("b.db")
	index, term := uint64(9), uint64(2)
	m.DB = &evidence.DB{Handle: &dumpdb.DB{}, File: "b.db",
		KV: &dumpdb.KVStats{Revisions: 3, LastRev: dumpdb.Rev{Main: 7}}}
	for _, name := range everyBucket {
		m.DB.Buckets = append(m.DB.Buckets, dumpdb.Bucket{Name: name})
	}
	m.DB.Members = []dumpdb.Member{{ID: 1, Name: "a", PeerURLs: []string{"http://a:2380"}},
		{ID: 2, Name: "b", PeerURLs: []string{"http://b:2380"}}}
	m.DB.Auth = dumpdb.Auth{Enabled: true, HasRevision: true, Revision: 4,
		Users: []dumpdb.User{{Name: "root", Roles: []string{"app", "root"}}, {Name: "x"}},
		Roles: []dumpdb.Role{{Name: "app", Perms: []dumpdb.Permission{
			{Key: []byte("b"), RangeEnd: []byte("c"), Type: 2}}}}}
	m.DB.Meta = dumpdb.MetaBucket{ConsistentIndex: &index, Term: &term, StorageVersion: "3.6.0",
		ScheduledCompact: &dumpdb.Rev{Main: 7}, FinishedCompact: &dumpdb.Rev{Main: 7}}
	m.DB.Cluster.Version = "3.6.0"
	return m
}

var authRevisionLow = []string{"error the auth revision is missing or too low for the users"}

// TestBackupRows: what the rows of a backup show about the cluster that is restored from it.
func TestBackupRows(t *testing.T) {
	perm := func(key, end string, kind int32) func(*evidence.Member) {
		return func(m *evidence.Member) {
			m.DB.Auth.Roles[0].Perms = []dumpdb.Permission{{Key: []byte(key), RangeEnd: []byte(end), Type: kind}}
		}
	}
	revs := func(last, scheduled, finished int64) func(*evidence.Member) {
		return func(m *evidence.Member) {
			m.DB.KV.LastRev.Main = last
			m.DB.Meta.ScheduledCompact = &dumpdb.Rev{Main: scheduled}
			m.DB.Meta.FinishedCompact = &dumpdb.Rev{Main: finished}
		}
	}
	for name, c := range map[string]struct {
		change func(m *evidence.Member)
		want   []string
	}{
		"sound":           {func(*evidence.Member) {}, nil},
		"no bucket lease": {withoutBucket("lease"), []string{"error there is no bucket lease"}},
		"no bucket key":   {withoutBucket("key"), []string{"error there is no bucket key"}},
		"no bucket meta":  {withoutBucket("meta"), []string{"error there is no bucket meta"}},
		"no members": {func(m *evidence.Member) { m.DB.Members = nil },
			[]string{"warning the member list is empty"}},
		"no peer URL": {func(m *evidence.Member) { m.DB.Members[1].PeerURLs = nil },
			[]string{"warning member 2 has no peer URL"}},
		"listed and removed": {func(m *evidence.Member) { m.DB.Removed = []dumpdb.ID{2} },
			[]string{"warning member 2 is listed and removed at once"}},
		"one name twice": {func(m *evidence.Member) { m.DB.Members[1].Name = "a" },
			[]string{"warning members 1 and 2 share the name a"}},
		"two members without a name": {func(m *evidence.Member) { m.DB.Members[0].Name, m.DB.Members[1].Name = "", "" },
			nil},
		"one URL twice": {func(m *evidence.Member) { m.DB.Members[1].PeerURLs = m.DB.Members[0].PeerURLs },
			[]string{"warning members 1 and 2 share the peer URL http://a:2380"}},
		"a single key":  {perm("b", "", 0), nil},
		"from a key on": {perm("b", "\x00", 1), nil},
		"an empty range": {perm("b", "b", 1),
			[]string{"warning role app has a permission that is not a range"}},
		"a range that ends before": {perm("b", "a", 1),
			[]string{"warning role app has a permission that is not a range"}},
		"a type above READWRITE": {perm("b", "", 3),
			[]string{"warning role app has a permission that is not a range"}},
		"a type below READ": {perm("b", "", -1),
			[]string{"warning role app has a permission that is not a range"}},
		"roles out of order": {func(m *evidence.Member) { m.DB.Auth.Users[0].Roles = []string{"root", "app"} },
			[]string{"error the roles of user root are not sorted"}},
		"a role that is not there": {func(m *evidence.Member) { m.DB.Auth.Users[1].Roles = []string{"ops"} },
			[]string{"error user x has the role ops, which does not exist"}},
		"another user has role root": {func(m *evidence.Member) { m.DB.Auth.Users[0].Name = "admin" },
			[]string{"error auth is enabled and no user root has the role root"}},
		"root without its role": {func(m *evidence.Member) { m.DB.Auth.Users[0].Roles = []string{"app"} },
			[]string{"error auth is enabled and no user root has the role root"}},
		"the same, auth off": {func(m *evidence.Member) { m.DB.Auth.Users, m.DB.Auth.Enabled = nil, false },
			nil},
		"no auth revision": {func(m *evidence.Member) { m.DB.Auth.HasRevision = false }, authRevisionLow},
		"auth revision 0":  {func(m *evidence.Member) { m.DB.Auth.Revision = 0 }, authRevisionLow},
		"bucket auth emptied": {func(m *evidence.Member) {
			m.DB.Auth.HasRevision, m.DB.Auth.Revision, m.DB.Auth.Enabled = false, 0, false
		}, authRevisionLow},
		"auth never used": {func(m *evidence.Member) { m.DB.Auth = dumpdb.Auth{} }, nil},
		"fewer changes than users": {func(m *evidence.Member) {
			m.DB.Auth.Users[0].HasOptions, m.DB.Auth.Revision = true, 3
		}, authRevisionLow},
		"rows of auth hidden by damage": {func(m *evidence.Member) {
			m.DB.Auth = dumpdb.Auth{Enabled: true, Users: []dumpdb.User{{Name: "x", Roles: []string{"ops"}}}}
			m.DB.Damage = []*dumpdb.DamageError{{Bucket: "authUsers"}}
		}, nil},
		"no term": {func(m *evidence.Member) { m.DB.Meta.Term = nil },
			[]string{"error there is a storage version and no term"}},
		"no term, no storage version": {func(m *evidence.Member) { m.DB.Meta.Term, m.DB.Meta.StorageVersion = nil, "" },
			nil},
		"a storage version of 3.5": {func(m *evidence.Member) { m.DB.Meta.StorageVersion = "3.5.0" },
			[]string{`error the storage version "3.5.0" is none`}},
		"a cluster version of letters": {func(m *evidence.Member) { m.DB.Cluster.Version = "x" },
			[]string{`error the cluster version "x" is none`}},
		"no cluster version": {func(m *evidence.Member) { m.DB.Cluster.Version = "" }, nil},
		"finished above scheduled": {revs(9, 7, 8),
			[]string{"error a compaction is finished that was not scheduled"}},
		"finished below scheduled": {revs(9, 7, 6), nil},
		"finished, never scheduled": {func(m *evidence.Member) { m.DB.Meta.ScheduledCompact = nil },
			[]string{"error a compaction is finished that was not scheduled"}},
		"never compacted": {func(m *evidence.Member) {
			m.DB.Meta.ScheduledCompact, m.DB.Meta.FinishedCompact = nil, nil
		},
			nil},
		"scheduled above the records": {revs(7, 8, 8),
			[]string{"warning the compact revision is above the last record"}},
		"the same in a damaged bucket": {func(m *evidence.Member) { revs(7, 8, 8)(m); m.DB.KVDamaged = true }, nil},
		"the same, key not read":       {func(m *evidence.Member) { revs(7, 8, 8)(m); m.DB.KV = nil }, nil},
		"no record, compacted": {func(m *evidence.Member) { revs(7, 8, 8)(m); m.DB.KV.Revisions = 0 },
			[]string{"warning bucket key is empty although revisions were compacted"}},
		"records without an index": {func(m *evidence.Member) { m.DB.Meta.ConsistentIndex = nil },
			[]string{"warning there are records and no consistent index"}},
		"neither records nor index": {func(m *evidence.Member) {
			m.DB.Meta = dumpdb.MetaBucket{}
			m.DB.KV.Revisions = 0
		},
			nil},
		"no bucket can be reached": {func(m *evidence.Member) {
			m.DB.Buckets, m.DB.Members, m.DB.Damage = nil, nil, []*dumpdb.DamageError{{}}
		}, []string{"error no bucket can be reached"}},
	} {
		m := soundBackup()
		c.change(m)
		var got []string
		for _, judge := range []func(*evidence.Member) []Finding{judgeBackupBuckets, judgeBackupMembers,
			judgeBackupAuth, judgeBackupVersions, judgeBackupRevisions} {
			for _, f := range judge(m) {
				got = append(got, string(f.Severity)+" "+strings.TrimPrefix(f.Title, "b.db: "))
				if (f.Class == ClassBackupDamaged) != (f.Severity == Error) || len(f.Evidence) != 1 ||
					f.Evidence[0].File != "b.db" || f.Evidence[0].Expected == "" {
					t.Errorf("%s: %+v", name, f)
				}
			}
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

func withoutBucket(name string) func(*evidence.Member) {
	return func(m *evidence.Member) {
		m.DB.Buckets = slices.DeleteFunc(m.DB.Buckets, func(b dumpdb.Bucket) bool { return b.Name == name })
	}
}

// TestBackupsThatDoNotOpen: a file that is no database is said to be one, and nothing about its rows.
func TestBackupsThatDoNotOpen(t *testing.T) {
	backup := func(size int64, foreign bool, trailer string) *evidence.Member {
		m := &evidence.Member{Source: &evidence.Source{Name: "b.db", Kind: evidence.KindBackup}}
		m.DB = &evidence.DB{Size: size, Foreign: foreign, Trailer: dumpdb.Trailer{State: trailer}}
		return m
	}
	sound := soundBackup()
	sound.Source.Kind, sound.DB.Trailer.State = evidence.KindBackup, "match"
	for name, c := range map[string]struct {
		m              *evidence.Member
		trailer, size  string
		trailerOutcome Outcome
		kind           Kind
	}{
		"79 bytes": {backup(79, false, "absent"), "b.db is not a database", "", NotChecked, KindBackupCut},
		"80 bytes": {backup(80, false, "absent"), "b.db is not a database", "b.db does not open", NotChecked,
			""},
		"a message":  {backup(17, true, "absent"), "b.db is not a database", "", NotChecked, KindBackupForeign},
		"noise":      {backup(4096, true, ""), "b.db is not a database", "", NotChecked, KindBackupForeign},
		"unreadable": {backup(80, false, ""), "the trailer could not be read", "does not open", NotChecked, ""},
		"changed":    {backup(80, false, "mismatch"), "", "does not open", Violated, ""},
	} {
		in := &Input{Members: Sources{c.m}}
		if r := runBackupTrailer(in); r.Outcome != c.trailerOutcome || !strings.Contains(r.Reason, c.trailer) {
			t.Errorf("%s: %+v, want %q", name, r, c.trailer)
		}
		r := runBackupSize(in)
		if !strings.Contains(r.Reason, c.size) || (c.kind == "") != (len(r.Findings) == 0) ||
			c.kind != "" && (r.Findings[0].Kind != c.kind || r.Outcome != Violated || len(r.Findings) != 1) {
			t.Errorf("%s: %+v", name, r)
		}
		in.Members = append(in.Members, sound)
		r = judgeBackups(in.Members, judgeBackupMembers)
		if r.Outcome != NotChecked || !strings.Contains(r.Reason, "b.db") {
			t.Errorf("%s and a sound one: %+v", name, r)
		}
	}
	if r := judgeBackups(Sources{sound}, judgeBackupMembers); r.Outcome != Holds || r.Reason != "" {
		t.Errorf("a sound one: %+v", r)
	}
	for _, run := range []func(*Input) Result{runBackupTrailer, runBackupSize} {
		if r := run(&Input{Members: Sources{member("n1")}}); r.Reason != noBackup || r.Outcome == Holds {
			t.Errorf("no backup: %+v", r)
		}
	}
}
