package check

import (
	"testing"

	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/dumplog"
)

// TestBackupTerm: the term of a backup is compared with logs that agree about the entry and are of one cluster.
func TestBackupTerm(t *testing.T) {
	restored := func(m *evidence.Member) { m.WAL.Summary.Start = dumplog.StartRestore }
	for name, c := range map[string]struct {
		change func(b, m, o *evidence.Member)
		made   int
		found  bool
	}{
		"altered":                  {func(_, _, _ *evidence.Member) {}, 1, true},
		"right":                    {func(b, _, _ *evidence.Member) { *b.DB.Meta.Term = 3 }, 1, false},
		"logs of two clusters":     {func(_, _, o *evidence.Member) { o.ClusterID = 9 }, 0, false},
		"not committed in any log": {func(_, m, o *evidence.Member) { m.Commit, o.Commit = 4, 4 }, 0, false},
		"servers that store no term": {func(_, m, o *evidence.Member) { m.Version.Minor, o.Version.Minor = 4, 4 }, 0,
			false},
		"logs that differ about it":      {func(_, _, o *evidence.Member) { o.WAL.LastByTerm[0].Term = 4 }, 0, false},
		"only one log reaches the entry": {func(_, _, o *evidence.Member) { o.Commit = 4 }, 1, true},
		"of a restored cluster":          {func(_, m, _ *evidence.Member) { restored(m) }, 1, true},
		"the same without a database":    {func(_, m, _ *evidence.Member) { restored(m); m.DB = nil }, 0, false},
		"no database, not restored":      {func(_, m, _ *evidence.Member) { m.DB = nil }, 1, true},
	} {
		b, m, o := withDB(member("b.db"), 20), withLog(withDB(member("n1"), 25), 30), withLog(member("n2"), 30)
		term := uint64(2)
		b.DB.Meta.Term = &term
		for _, x := range []*evidence.Member{m, o} {
			x.WAL.LastByTerm = []evidence.TermEnd{{Term: 3, First: 1, Last: 30}}
			x.WAL.Summary.Start = dumplog.StartBootstrap
			x.Commit, x.ClusterID, x.Version.Minor = 30, 1, 5
		}
		c.change(b, m, o)
		made, fs := backupTerm(&Input{Members: Sources{b, m, o}}, b)
		if made != c.made || (len(fs) > 0) != c.found {
			t.Errorf("%s: %d made, %+v", name, made, fs)
		}
	}
}
