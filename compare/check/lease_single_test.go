package check_test

import (
	"fmt"
	"strings"
	"testing"

	"go.etcd.io/bbolt"

	"github.com/etcd-medic/etcd-medic/compare/check"
	"github.com/etcd-medic/etcd-medic/compare/evidence/casetest"
	"github.com/etcd-medic/etcd-medic/compare/evidence/clustertest"
	"github.com/etcd-medic/etcd-medic/compare/evidence/evidencetest"
)

// TestLeasesOfOneMember: a single member against its own log.
func TestLeasesOfOneMember(t *testing.T) {
	leased := func(version string, auth bool) *clustertest.Script {
		s := clustertest.NewScript(version)
		user := ""
		if auth {
			s.EnableAuth()
			user = "app"
		}
		for id := int64(7); id <= 9; id++ {
			s.Add(clustertest.As(user, 0, clustertest.GrantRequest(id, 60)))
		}
		for id := int64(7); id <= 8; id++ {
			s.Add(clustertest.As(user, 0, clustertest.PutRequest("/app/"+string(rune('a'+id)), "1", id)))
		}
		return s
	}
	after := func(s *clustertest.Script, user string) *clustertest.Script {
		s.Add(clustertest.As(user, 0, clustertest.PutRequest("/app/x", "1", 0)))
		s.Add(clustertest.As(user, 0, clustertest.PutRequest("/app/x", "2", 0)))
		return s
	}
	revoked := func(version string, lease int64, skip ...int) *clustertest.Script {
		s := leased(version, false)
		s.Add(clustertest.As("", 0, clustertest.RevokeRequest(lease), skip...))
		return after(s, "")
	}
	drop := func(lease int64) func(*bbolt.Tx) error {
		return func(tx *bbolt.Tx) error { return tx.Bucket([]byte("lease")).Delete(leaseKey(uint64(lease))) }
	}
	refused := leased("3.3.0", true)
	refused.Add(clustertest.As("", 0, clustertest.RevokeRequest(7), 0))
	stale := leased("3.4.3", true)
	stale.Add(clustertest.Step{User: "app", AuthRevision: 1, Req: clustertest.RevokeRequest(7), Skip: []int{0}})
	classOf := map[check.Severity]check.Class{check.Error: "latent-divergence"}
	for name, c := range map[string]struct {
		s    *clustertest.Script
		gone func(*bbolt.Tx) error
		// content is the class of what is said of the database, compared with the log.
		content  string
		severity check.Severity
		says     string
	}{
		"sound": {s: revoked("3.5.0", 7)},
		"the revoke was lost": {s: revoked("3.5.0", 7, 0), content: "data-divergence", severity: check.Error,
			says: "still there"},
		"of a lease without keys": {s: revoked("3.5.0", 9, 0), content: "latent-divergence", severity: check.Error,
			says: "still there"},
		"only the keys stay": {s: revoked("3.5.0", 7, 0), gone: drop(7), content: "data-divergence",
			severity: check.Error, says: "the keys are not deleted"},
		"a row is gone": {s: revoked("3.5.0", 7), gone: drop(9), content: "latent-divergence",
			severity: check.Error, says: "absent"},
		"refused by the rules": {s: after(refused, "app"), severity: check.Warning,
			says: "refused: user name is empty"},
		"refused to its client": {s: after(stale, "app"), severity: check.Info, says: "the client got an error"},
		"all of a lease is gone": {s: without(revoked("3.5.0", 7), 0), content: "data-divergence",
			severity: check.Error,
			says:     "deleted at revision"},
		"revoked and granted again": {s: regranted(revoked("3.5.0", 7))},
	} {
		t.Run(name, func(t *testing.T) {
			dir := c.s.Write(t, t.TempDir())[0]
			if c.gone != nil {
				casetest.EditDBOnce(t, dir, c.gone)
			}
			evidencetest.Unchanged(t, dir)
			in := dirInput(t, dir)
			fs := runCheck(t, in, "L09").Findings
			content := ""
			if k := runCheck(t, in, "K03").Findings; len(k) > 0 {
				content = string(k[0].Class)
			}
			if content != c.content {
				t.Errorf("K03 is of class %q, want %q", content, c.content)
			}
			if c.severity == "" {
				if len(fs) > 0 {
					t.Errorf("%+v", fs[0])
				}
				return
			}
			if len(fs) != 1 || fs[0].Severity != c.severity || fs[0].Class != classOf[c.severity] ||
				!strings.Contains(fmt.Sprintf("%s %s %+v", fs[0].Title, fs[0].Explanation, fs[0].Evidence), c.says) {
				t.Errorf("%+v, want %s with %q", fs, c.severity, c.says)
			}
		})
	}
}

// regranted grants the revoked lease again.
func regranted(s *clustertest.Script) *clustertest.Script {
	s.Add(clustertest.As("", 0, clustertest.GrantRequest(7, 60)))
	s.Add(clustertest.As("", 0, clustertest.PutRequest("/app/x", "3", 7)))
	return s
}

// without lets one member revoke lease 8 although no entry says so.
func without(s *clustertest.Script, member int) *clustertest.Script {
	s.Of[member] = clustertest.ScriptMember{RevokesAlone: map[int]int64{s.Start(2): 8}}
	s.Add(clustertest.As("", 0, clustertest.PutRequest("/app/y", "1", 0)))
	return s
}
