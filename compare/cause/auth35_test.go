package cause_test

import (
	"encoding/base64"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"go.etcd.io/bbolt"
	"go.etcd.io/etcd/api/v3/authpb"
	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/membershippb"
	"golang.org/x/crypto/bcrypt"

	"github.com/etcd-medic/etcd-medic/compare"
	"github.com/etcd-medic/etcd-medic/compare/check"
	"github.com/etcd-medic/etcd-medic/compare/evidence/clustertest"
)

func changePassword() *pb.InternalRaftRequest {
	return &pb.InternalRaftRequest{AuthUserChangePassword: &pb.AuthUserChangePasswordRequest{Name: "app",
		HashedPassword: "bmV3"}}
}

// TestAuthRepeatedOn35: a restart of 3.5 with an index that was not stored executes entries of all kinds again, those
// about auth too.
func TestAuthRepeatedOn35(t *testing.T) {
	const id = "cindex-not-saved-by-defrag"
	script := func(version string, kv, dropped bool) *clustertest.Script {
		s := withAuth(newScript(version))
		for i := range 10 {
			s.Add(as("root", 0, put(fmt.Sprintf("/app/k%d", i%4), fmt.Sprint("v", i), 0)))
		}
		from := s.Add(as("root", 0, grantMore("/more/")))
		if kv {
			for i := range 6 {
				s.Add(as("root", 0, put(fmt.Sprintf("/app/k%d", i%4), fmt.Sprint("w", i), 0)))
			}
		}
		to := s.Add(as("root", 0, changePassword()))
		start := s.Start(1)
		s.Of[1] = clustertest.ScriptMember{Repeats: []clustertest.ScriptRepeat{{From: from, To: to, Before: start}}}
		if dropped {
			s.Add(as("app", 0, put("/app/late", "1", 0), 1)) // stamped with a lower auth revision than node2's
		}
		for i := range 3 {
			st := as("root", 0, put("/app/after", fmt.Sprint(i), 0))
			st.AuthRevision = 100 // of a member that stands higher still
			s.Add(st)
		}
		return s
	}
	t.Run("with keys", func(t *testing.T) {
		r := diagnoseScript(t, script("3.5.0", true, false))
		told{class: "data-divergence", cause: id, certainty: "strong", violated: []string{"A01", "A02", "C04"},
			holds:  []string{"K03"},
			absent: []string{"auth-revision-replay", "auth-revision-unequal", "unexplained-first-divergence"},
			best:   []string{"node1", "node3"}}.check(t, r)
		if f := findings(r, "node2", "A02"); len(f) != 1 || len(f[0].Evidence) != 3 ||
			!strings.Contains(f[0].Explanation, "it rose by 2") {
			t.Errorf("%+v", f)
		}
	})
	t.Run("auth alone", func(t *testing.T) {
		told{class: "latent-divergence", cause: id, certainty: "strong", violated: []string{"A01", "A02"},
			holds:  []string{"K01", "K03", "C04"},
			absent: []string{"auth-revision-replay", "auth-revision-unequal"}}.check(t,
			diagnoseScript(t, script("3.5.0", false, false)))
	})
	t.Run("a write was dropped since", func(t *testing.T) {
		told{class: "data-divergence", cause: id, violated: []string{"A01", "A02", "A04"}, holds: []string{"K03"},
			absent: []string{"unexplained-first-divergence", "auth-revision-unequal"}}.check(t,
			diagnoseScript(t, script("3.5.0", false, true)))
	})
	t.Run("3.6 never repeats", func(t *testing.T) {
		r := diagnoseScript(t, script("3.6.0", false, false))
		told{class: "latent-divergence", cause: "auth-revision-unequal", absent: []string{id}}.check(t, r)
	})
	t.Run("3.4 repeats auth alone", func(t *testing.T) {
		told{class: "latent-divergence", cause: "auth-revision-replay", absent: []string{id}}.check(t,
			diagnoseScript(t, script("3.4.0", false, false)))
	})
	t.Run("no restart", func(t *testing.T) {
		s := script("3.5.0", false, false)
		of := s.Of[1]
		of.Repeats[0].Before += 2 // behind the start and the writes that follow it
		of.Repeats[0].To = of.Repeats[0].From
		s.Of[1] = of
		r := diagnoseScript(t, s)
		if got := outcome(r, "A02"); got != check.Violated {
			t.Error(got)
		}
	})
}

// TestAuthAheadOn35: the database of 3.5 holds changes of auth above its consistent index; the next start would repeat
// them.
func TestAuthAheadOn35(t *testing.T) {
	const id = "cindex-not-saved-by-defrag"
	script := func(version string) *clustertest.Script {
		s := withAuth(newScript(version))
		for i := range 10 {
			s.Add(as("root", 0, put(fmt.Sprintf("/app/k%d", i%4), fmt.Sprint("v", i), 0)))
		}
		last := s.Add(as("root", 0, put("/app/last", "x", 0)))
		s.Add(as("root", 0, grantMore("/more/")))
		s.Add(as("root", 0, changePassword()))
		s.Of[1] = clustertest.ScriptMember{IndexAt: last}
		return s
	}
	r := diagnoseScript(t, script("3.5.0"))
	told{class: "latent-divergence", cause: id, certainty: "strong", violated: []string{"C03"},
		holds: []string{"A01", "A02", "A03", "K01", "K03"}, absent: []string{"auth-revision-unequal"}}.check(t, r)
	if f := findings(r, "node2", "C03"); len(f) != 1 || f[0].Evidence[1].Bucket != "auth" {
		t.Errorf("%+v", f)
	}
	// there the index lags legally
	told{class: "healthy", absent: []string{id}, holds: []string{"C03", "A02"}}.check(t,
		diagnoseScript(t, script("3.4.0")))
}

// TestIndexBelowSmallBuckets: from 3.5 on the consistent index is stored with every entry. If it is below entries whose
// roles, leases and alarms are there, the rows are those of these entries, not of another history.
func TestIndexBelowSmallBuckets(t *testing.T) {
	script := func(version string, written bool) *clustertest.Script {
		s := withAuth(newScript(version))
		last := s.Add(as("root", 0, put("/app/last", "x", 0)))
		s.Add(as("", 0, clustertest.GrantRequest(7777, 600)))
		if written {
			s.Add(as("root", 0, put("/app/more", "x", 0)))
		}
		s.Add(as("root", 0, grantMore("/more/")))
		s.Add(as("root", 0, changePassword()))
		s.Add(as("", 0, raise(0xa1, pb.AlarmType_NOSPACE)))
		s.Of[1] = clustertest.ScriptMember{IndexAt: last}
		return s
	}
	for _, version := range []string{"3.5.0", "3.6.0", "3.7.0"} {
		for written, count := range map[bool]int{false: 1, true: 2} {
			r := diagnoseScript(t, script(version, written))
			cause := map[bool]string{true: "cindex-not-saved-by-defrag"}[version == "3.5.0"]
			told{class: "latent-divergence", cause: cause, best: []string{"node1", "node3"}, violated: []string{"C03"},
				holds:  []string{"A01", "A02", "A03", "K01", "K03", "L01", "M17"},
				absent: []string{"auth-revision-unequal"}}.check(t, r)
			if f := findings(r, "node2", "C03"); len(f) != count {
				t.Errorf("%s, written %t: %+v", version, written, f)
			}
		}
	}
	told{class: "healthy", holds: []string{"C03", "A02"}}.check(t, diagnoseScript(t, script("3.4.0", false)))
}

// setVersion is the entry that raises the cluster version.
func setVersion(version string) clustertest.Step {
	return as("", 0, &pb.InternalRaftRequest{
		ClusterVersionSet: &membershippb.ClusterVersionSetRequest{Ver: version}})
}

// TestAuthRepeatedBeforeUpgrade: a restart of 3.4 repeated auth entries alone, also if the member was upgraded since.
// The entries between the end of the process and the start that was published later were refused as well.
func TestAuthRepeatedBeforeUpgrade(t *testing.T) {
	script := func(version string, later ...string) *clustertest.Script {
		s := withAuth(newScript("3.4.0"))
		s.Version = version
		s.Add(setVersion("3.4.0"))
		for i := range 10 {
			s.Add(as("root", 1, put(fmt.Sprintf("/app/k%d", i%4), fmt.Sprint("v", i), 0)))
		}
		from := s.Add(as("root", 0, grantMore("/more/")))
		to := s.Add(as("root", 0, changePassword()))
		for i := range 3 {
			s.Add(as("root", 0, put(fmt.Sprint("/app/dropped", i), "x", 0), 1))
		}
		start := s.Start(1)
		s.Of[1] = clustertest.ScriptMember{Repeats: []clustertest.ScriptRepeat{{From: from, To: to, Before: to + 1}}}
		for i := range 9 {
			st := as("root", 0, put(fmt.Sprintf("/app/k%d", i%4), fmt.Sprint("w", i), 0))
			st.AuthRevision = 100 // of a member whose auth revision is higher
			s.Add(st)
		}
		if start != to+4 {
			t.Fatal(start, to)
		}
		for _, v := range later {
			s.Add(setVersion(v))
		}
		return s
	}
	for _, later := range [][]string{nil, {"3.5.0"}, {"3.5.0", "3.6.0"}} {
		version := append([]string{"3.4.0"}, later...)[len(later)]
		r := diagnoseScript(t, script(version, later...))
		told{class: "data-divergence", cause: "auth-revision-replay", certainty: "proof",
			violated: []string{"A01", "A02", "A04"}, holds: []string{"K03"},
			best:   []string{"node1", "node3"},
			absent: []string{"auth-revision-unequal", "cindex-not-saved-by-defrag"}}.check(t, r)
	}
}

// TestPasswordEmptied: a release up to 3.4 ignores the hash that a proposer of 3.5 sends, and hashes a password that is
// empty.
func TestPasswordEmptied(t *testing.T) {
	const id = "auth-password-emptied"
	hash := func(password string) string {
		h, err := bcrypt.GenerateFromPassword([]byte(password), bcrypt.MinCost)
		if err != nil {
			t.Fatal(err)
		}
		return string(h)
	}
	right := hash("right")
	script := func(founded string) *clustertest.Script {
		s := withAuth(newScript("3.4.0"))
		s.Version = "3.5.0"
		s.Add(setVersion(founded))
		s.Add(as("root", 0, &pb.InternalRaftRequest{AuthUserChangePassword: &pb.AuthUserChangePasswordRequest{
			Name: "app", HashedPassword: base64.StdEncoding.EncodeToString([]byte(right))}}))
		s.Add(as("root", 0, put("/app/k", "v", 0)))
		s.Add(setVersion("3.5.0"))
		return s
	}
	stored := func(h string) spoil {
		row, err := (&authpb.User{Name: []byte("app"), Password: []byte(h), Roles: []string{"app"}}).Marshal()
		if err != nil {
			t.Fatal(err)
		}
		return editDB(func(tx *bbolt.Tx) error { return tx.Bucket([]byte("authUsers")).Put([]byte("app"), row) })
	}
	alone := script("3.4.0").Write(t, t.TempDir())[1]
	stored(hash(""))(t, filepath.Join(alone, "member"))
	if r := diagnose(t, dirSpecs([]string{alone})); r.Verdict.Cause == nil || *r.Verdict.Cause != id {
		t.Errorf("alone: %s", r.Verdict.Summary)
	}
	for name, c := range map[string]struct {
		founded, hash string
		emptied       bool
	}{
		"empty":            {"3.4.0", hash(""), true},
		"another password": {"3.4.0", hash("other"), false},
		"never on 3.4":     {"3.5.0", hash(""), false},
		// A hash may ask for hours: it is not computed.
		"too costly": {"3.4.0", "$2a$31$" + hash("")[7:], false},
	} {
		r := diagnoseScript(t, script(c.founded), stored(right), stored(c.hash), stored(right))
		named := slices.ContainsFunc(r.Causes, func(k compare.Cause) bool { return k.ID == id })
		if outcome(r, "A09") != check.Violated || named != c.emptied {
			t.Errorf("%s: A09 %s, named %t", name, outcome(r, "A09"), named)
		}
		if c.emptied && (r.Verdict.Cause == nil || *r.Verdict.Cause != id) {
			t.Errorf("%s: another cause leads: %s", name, r.Verdict.Summary)
		}
	}
}
