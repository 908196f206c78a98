package copies_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/compare/evidence/evidencetest"
	"github.com/etcd-medic/etcd-medic/node"
	"github.com/etcd-medic/etcd-medic/refusal"
	"github.com/etcd-medic/etcd-medic/repair/copies"
)

func TestMain(m *testing.M) { os.Exit(evidencetest.Run(m)) }

func open(t *testing.T, specs ...evidence.Spec) *evidence.Set {
	t.Helper()
	set, err := evidence.Open(t.Context(), specs, evidence.Options{Hash: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { set.Close() })
	return set
}

func of(t *testing.T, incident string) (*copies.Cluster, *evidence.Set) {
	t.Helper()
	set := open(t, evidence.Spec{Where: evidencetest.Incident(t, incident)})
	c, err := copies.Of(t.Context(), set)
	if err != nil {
		t.Fatal(err)
	}
	return c, set
}

// TestOf reads the flags and the need of real data dirs of each line.
func TestOf(t *testing.T) {
	v := func(minor int) node.Version { return node.Version{Major: 3, Minor: minor} }
	for incident, want := range map[string]struct {
		need            node.Need
		voters, present int
	}{
		"a-auth-revision-replay": {node.Need{Cluster: v(4), Written: v(4)}, 3, 3},
		"gen-auth-latent":        {node.Need{Cluster: v(3), Written: v(3), V2EntriesAfterSnapshot: true}, 3, 3},
		"m-healthy-3.5":          {node.Need{Cluster: v(5), Written: v(5)}, 3, 3},
		"m-healthy-3.6":          {node.Need{Cluster: v(6), Written: v(6), Storage: v(6)}, 3, 3},
		"m-healthy-3.7":          {node.Need{Cluster: v(7), Written: v(7), Storage: v(7)}, 3, 3},
	} {
		t.Run(incident, func(t *testing.T) {
			c, _ := of(t, incident)
			if c.Need != want.need || c.Voters != want.voters || c.Present != want.present {
				t.Errorf("need %+v, %d of %d voters; want %+v", c.Need, c.Present, c.Voters, want)
			}
			names := map[string]bool{}
			for _, m := range c.Members {
				names[m.Config.Name] = true
				if len(m.Config.PeerURLs) == 0 || len(m.Config.ClientURLs) == 0 {
					t.Errorf("%+v", m.Config)
				}
			}
			if len(names) != len(c.Members) || len(c.Peers) < len(c.Members) {
				t.Errorf("names %v, peers %v", names, c.Peers)
			}
		})
	}
}

// TestMake: the copies hold what the sources hold, and are diagnosed as the same; the sources stay as they are.
func TestMake(t *testing.T) {
	c, set := of(t, "a-auth-revision-replay")
	dir := filepath.Join(t.TempDir(), "data")
	if err := c.Make(t.Context(), dir, nil); err != nil {
		t.Fatal(err)
	}
	for _, m := range c.Members {
		copied := open(t, evidence.Spec{Where: m.Config.DataDir}).Members[0]
		if got, want := copied.Source.Manifest.Digest(), m.Source.Source.Manifest.Digest(); got != want {
			t.Errorf("%s: digest %s, of the source %s", m.Config.Name, got, want)
		}
		for _, d := range []string{"", "member", "member/wal", "member/snap"} {
			if st, err := os.Stat(filepath.Join(m.Config.DataDir, d)); err != nil || st.Mode().Perm() != 0o700 {
				t.Errorf("%s/%s: %v %v", m.Config.DataDir, d, st, err)
			}
		}
	}
	if err := set.Unchanged(context.Background()); err != nil {
		t.Error(err)
	}
	if err := c.Make(t.Context(), dir, nil); !errors.Is(err, os.ErrExist) {
		t.Errorf("a second copy over the first: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := c.Make(ctx, filepath.Join(t.TempDir(), "x"), nil); !errors.Is(err, context.Canceled) {
		t.Errorf("after the end: %v", err)
	}
}

// TestRefuses: what cannot run together.
func TestRefuses(t *testing.T) {
	a := evidencetest.Incident(t, "a-auth-revision-replay")
	other := evidencetest.Incident(t, "m-healthy-3.6")
	backup := evidencetest.Incident(t, "o-backup-good")
	without := func(part string) []evidence.Spec {
		dir := evidencetest.Copy(t, filepath.Join(a, "node1"))
		if err := os.RemoveAll(filepath.Join(dir, "member", part)); err != nil {
			t.Fatal(err)
		}
		return []evidence.Spec{{Where: dir}}
	}
	for what, specs := range map[string][]evidence.Spec{
		"it is of cluster": {{Where: filepath.Join(a, "node1")}, {Where: filepath.Join(other, "node1")}},
		"it is the same member as x": {{Name: "x", Where: filepath.Join(a, "node1")},
			{Name: "y", Where: filepath.Join(a, "node1")}},
		"it is a backup":     {{Where: backup}},
		"not a data dir":     {{Where: filepath.Join(a, "node1", "member", "snap", "db")}},
		"it has no log":      without("wal"),
		"it has no database": without("snap"),
	} {
		_, err := copies.Of(t.Context(), open(t, specs...))
		var r *refusal.Error
		if !errors.As(err, &r) || !strings.Contains(r.Reason, what) {
			t.Errorf("%s: %v", what, err)
		}
	}
	if c, err := copies.Of(t.Context(), &evidence.Set{}); err == nil {
		t.Errorf("no source: %+v", c)
	}
}
