package compare_test

import (
	"strings"
	"testing"

	"go.etcd.io/bbolt"

	"github.com/etcd-medic/etcd-medic/compare/check"
	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/compare/evidence/clustertest"
	"github.com/etcd-medic/etcd-medic/compare/evidence/evidencetest"
)

// TestLeasesOfOneMember: a single member against its own log.
func TestLeasesOfOneMember(t *testing.T) {
	leased := func(version string, auth bool) *clustertest.Script {
		s := newScript(version)
		user := ""
		if auth {
			s, user = withAuth(s), "app"
		}
		for id := int64(7); id <= 9; id++ {
			s.Add(as(user, 0, grantLease(id, 60)))
		}
		for id := int64(7); id <= 8; id++ {
			s.Add(as(user, 0, put("/app/"+string(rune('a'+id)), "1", id)))
		}
		return s
	}
	after := func(s *clustertest.Script, user string) *clustertest.Script {
		s.Add(as(user, 0, put("/app/x", "1", 0)))
		s.Add(as(user, 0, put("/app/x", "2", 0)))
		return s
	}
	revoked := func(version string, lease int64, skip ...int) *clustertest.Script {
		s := leased(version, false)
		s.Add(as("", 0, revokeLease(lease), skip...))
		return after(s, "")
	}
	drop := func(lease int64) spoil {
		return editDB(func(tx *bbolt.Tx) error { return tx.Bucket([]byte("lease")).Delete(leaseRow(lease)) })
	}
	refused := leased("3.3.0", true)
	refused.Add(as("", 0, revokeLease(7), 0))
	for name, c := range map[string]struct {
		s        *clustertest.Script
		spoil    spoil
		class    string
		severity check.Severity
		says     string
	}{
		"sound": {s: revoked("3.5.0", 7), class: "healthy"},
		"the revoke was lost": {s: revoked("3.5.0", 7, 0), class: "db-damage", severity: check.Error,
			says: "still there"},
		"of a lease without keys": {s: revoked("3.5.0", 9, 0), class: "latent-divergence", severity: check.Error,
			says: "still there"},
		"only the keys stay": {s: revoked("3.5.0", 7, 0), spoil: drop(7), class: "db-damage",
			severity: check.Error, says: "the keys are not deleted"},
		"a row is gone": {s: revoked("3.5.0", 7), spoil: drop(9), class: "latent-divergence",
			severity: check.Error, says: "absent"},
		"refused by the rules": {s: after(refused, "app"), class: "healthy", severity: check.Warning,
			says: "refused: user name is empty"},
		"all of a lease is gone": {s: without(revoked("3.5.0", 7), 0), class: "db-damage", severity: check.Error,
			says: "deleted at revision"},
		"revoked and granted again": {s: regranted(revoked("3.5.0", 7)), class: "healthy"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := c.s.Write(t, t.TempDir())[0]
			if c.spoil != nil {
				c.spoil(t, dir+"/member")
			}
			evidencetest.Unchanged(t, dir)
			r := diagnose(t, []evidence.Spec{{Name: "node1", Where: dir}})
			everyFindingHasEvidence(t, r)
			if string(r.Verdict.Class) != c.class {
				t.Errorf("class %s, want %s: %s", r.Verdict.Class, c.class, r.Verdict.Summary)
			}
			fs := findings(r, "node1", "L09")
			if c.severity == "" {
				if len(fs) > 0 {
					t.Error(text(fs[0]))
				}
				return
			}
			if len(fs) != 1 || fs[0].Severity != c.severity || !strings.Contains(text(fs[0]), c.says) {
				t.Errorf("%+v, want %s with %q", fs, c.severity, c.says)
			}
		})
	}
}

// regranted grants the revoked lease again.
func regranted(s *clustertest.Script) *clustertest.Script {
	s.Add(as("", 0, grantLease(7, 60)))
	s.Add(as("", 0, put("/app/x", "3", 7)))
	return s
}

// without lets one member revoke lease 8 although no entry says so.
func without(s *clustertest.Script, member int) *clustertest.Script {
	s.Of[member] = clustertest.ScriptMember{RevokesAlone: map[int]int64{s.Start(2): 8}}
	s.Add(as("", 0, put("/app/y", "1", 0)))
	return s
}
