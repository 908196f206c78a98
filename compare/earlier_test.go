package compare_test

import (
	"path/filepath"
	"slices"
	"testing"

	"go.etcd.io/bbolt"

	"github.com/etcd-medic/etcd-medic/compare/check"
	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/compare/evidence/clustertest"
	"github.com/etcd-medic/etcd-medic/compare/evidence/evidencetest"
)

// TestBackupBeforeRestore: a backup of other members whose history the cluster continues is from before its restore: it
// is set apart with a note. With another history it is of another cluster. A backup without a record that the cluster
// still holds may be either.
func TestBackupBeforeRestore(t *testing.T) {
	noKeys := func(tx *bbolt.Tx) error {
		if err := tx.DeleteBucket([]byte("key")); err != nil {
			return err
		}
		_, err := tx.CreateBucket([]byte("key"))
		return err
	}
	last := func(change func(b *bbolt.Bucket, k, v []byte) error) clustertest.Damage {
		return clustertest.EditDB(func(tx *bbolt.Tx) error {
			b := tx.Bucket([]byte("key"))
			k, v := b.Cursor().Last()
			return change(b, slices.Clone(k), slices.Clone(v))
		})
	}
	for name, v := range map[string]struct {
		change clustertest.Damage
		kind   check.Kind
	}{
		"the same records": {nil, check.KindBackupBeforeRestore},
		"one record less": {last(func(b *bbolt.Bucket, k, _ []byte) error { return b.Delete(k) }),
			check.KindBackupBeforeRestore},
		"another value": {last(func(b *bbolt.Bucket, k, v []byte) error {
			v[len(v)-1] ^= 1
			return b.Put(k, v)
		}), check.KindClustersMixed},
		"a record that the cluster lacks": {last(func(b *bbolt.Bucket, k, v []byte) error {
			k[len(k)-1]++ // the next part of the same revision
			return b.Put(k, v)
		}), check.KindClustersMixed},
		"a record that the backup lacks": {last(func(b *bbolt.Bucket, _, _ []byte) error {
			c := b.Cursor()
			c.Last()
			k, _ := c.Prev()
			return b.Delete(slices.Clone(k))
		}), check.KindClustersMixed},
		"no record": {clustertest.EditDB(noKeys), check.KindBackupUnrelated},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := evidencetest.Copy(t, evidencetest.Incident(t, "t-restored-compacted"))
			old := evidencetest.Copy(t, filepath.Join(dir, "m2"))
			clustertest.EditDB(otherMembers)(t, filepath.Join(old, "member"))
			if v.change != nil {
				v.change(t, filepath.Join(old, "member"))
			}
			backup := evidence.Spec{Name: "old.db", Where: filepath.Join(old, "member", "snap", "db")}
			var all []evidence.Spec
			for _, name := range []string{"m1", "m2", "m3"} {
				all = append(all, evidence.Spec{Name: name, Where: filepath.Join(dir, name)})
			}
			for _, specs := range [][]evidence.Spec{append(slices.Clone(all), backup), {all[1], backup}} {
				evidencetest.Unchanged(t, dir, old)
				r := diagnose(t, specs)
				i := slices.IndexFunc(r.Findings, func(f check.Finding) bool { return f.Check == check.M01 })
				if i < 0 {
					t.Fatalf("%s, M01 says nothing", r.Verdict.Summary)
				}
				class := check.ClassLagging
				switch {
				case v.kind == check.KindClustersMixed:
					class = check.ClassForeignCluster
				case v.kind == check.KindBackupUnrelated:
					class = check.ClassInconclusive
				case len(specs) == 2:
					class = check.ClassHealthy
				}
				if r.Findings[i].Kind != v.kind || r.Verdict.Class != class {
					t.Errorf("%d sources: %s, %s: %s", len(specs), r.Verdict.Class, r.Findings[i].Kind,
						r.Findings[i].Title)
				}
				n, apart := len(r.Members), v.kind != check.KindClustersMixed
				if apart && (n != len(specs)-1 || len(r.Sources) != len(specs)) {
					t.Errorf("%d members and %d sources of %d", n, len(r.Sources), len(specs))
				}
			}
		})
	}
}

// TestBackupOfAnotherFounding: a cluster whose log shows its bootstrap was not restored, whatever its records share
// with a backup of other members.
func TestBackupOfAnotherFounding(t *testing.T) {
	dir := evidencetest.Incident(t, "m-healthy-3.7")
	old := evidencetest.Copy(t, filepath.Join(dir, "node2"))
	clustertest.EditDB(otherMembers)(t, filepath.Join(old, "member"))
	r := diagnose(t, append(specsOf(t, dir),
		evidence.Spec{Name: "old.db", Where: filepath.Join(old, "member", "snap", "db")}))
	if r.Verdict.Class != check.ClassForeignCluster {
		t.Errorf("%s: %s", r.Verdict.Class, r.Verdict.Summary)
	}
}

// otherMembers gives a database the member list of another cluster.
func otherMembers(tx *bbolt.Tx) error {
	if err := tx.DeleteBucket([]byte("members")); err != nil {
		return err
	}
	b, err := tx.CreateBucket([]byte("members"))
	if err != nil {
		return err
	}
	return b.Put([]byte("abc"), []byte(`{"id":2748,"peerURLs":["http://127.0.0.1:1"],"name":"old"}`))
}
