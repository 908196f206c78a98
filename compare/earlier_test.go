package compare_test

import (
	"encoding/binary"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"go.etcd.io/bbolt"

	"github.com/etcd-medic/etcd-medic/compare"
	"github.com/etcd-medic/etcd-medic/compare/check"
	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/compare/evidence/clustertest"
	"github.com/etcd-medic/etcd-medic/compare/evidence/evidencetest"
)

// TestBackupBeforeRestore: a backup of other members whose history the cluster continues is from before its restore: it
// is set apart with a note. With another history it is of another cluster. A backup without a record that the cluster
// still holds may be either, as may one that contradicts itself.
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
		}), check.KindBackupUnrelated},
		"a record that the backup lacks": {last(func(b *bbolt.Bucket, _, _ []byte) error {
			c := b.Cursor()
			c.Last()
			k, _ := c.Prev()
			return b.Delete(slices.Clone(k))
		}), check.KindBackupUnrelated},
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
				case v.kind == check.KindBackupUnrelated && strings.HasPrefix(name, "a record"):
					class = check.ClassDBDamage // what it holds contradicts itself
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

// TestDamagedBackupBeforeRestore: a backup that is set apart is compared with nothing, but what is wrong with its file
// is found, and blames nothing else.
func TestDamagedBackupBeforeRestore(t *testing.T) {
	for name, v := range map[string]struct {
		change clustertest.Damage
		check  check.ID
		class  check.Class
	}{
		"sum": {func(t *testing.T, dir string) {
			appendTo(t, filepath.Join(dir, "snap", "db"), make([]byte, 32))
		}, check.B01, check.ClassBackupDamaged},
		"history": {halveRecord, check.K04, check.ClassDBDamage},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := evidencetest.Copy(t, evidencetest.Incident(t, "t-restored-compacted"))
			old := evidencetest.Copy(t, filepath.Join(dir, "m2"))
			clustertest.EditDB(otherMembers)(t, filepath.Join(old, "member"))
			v.change(t, filepath.Join(old, "member"))
			evidencetest.Unchanged(t, dir, old)
			r := diagnose(t, []evidence.Spec{{Name: "m1", Where: filepath.Join(dir, "m1")},
				{Name: "m2", Where: filepath.Join(dir, "m2")}, {Name: "m3", Where: filepath.Join(dir, "m3")},
				{Name: "old.db", Where: filepath.Join(old, "member", "snap", "db")}})
			var found, apart bool
			for _, f := range r.Findings {
				apart = apart || f.Kind == check.KindBackupBeforeRestore
				found = found || f.Check == v.check
				if f.Severity.Rank() >= check.Error.Rank() && !slices.Equal(f.Members, []string{"old.db"}) {
					t.Errorf("%s blames %v: %s", f.ID, f.Members, f.Title)
				}
			}
			if !apart || !found || r.Verdict.Class != v.class || len(r.Best.Members) == 0 {
				t.Errorf("set apart %v, %s %v, %s, best %+v: %s", apart, v.check, found, r.Verdict.Class, r.Best,
					r.Verdict.Summary)
			}
			for _, c := range r.Checks {
				if c.ID == v.check && c.Outcome != check.Violated {
					t.Errorf("%s: %s", c.ID, c.Outcome)
				}
			}
		})
	}
}

// TestDamagedBackupWithoutDatabase: the file of a backup that is set apart is examined even if no member has a database
// that opens.
func TestDamagedBackupWithoutDatabase(t *testing.T) {
	dir := evidencetest.Copy(t, evidencetest.Incident(t, "t-restored-compacted"))
	old := evidencetest.Copy(t, filepath.Join(dir, "m2"))
	clustertest.EditDB(otherMembers)(t, filepath.Join(old, "member"))
	db := filepath.Join(old, "member", "snap", "db")
	halveRecord(t, filepath.Join(old, "member"))
	if err := os.Truncate(filepath.Join(dir, "m1", "member", "snap", "db"), 0); err != nil {
		t.Fatal(err)
	}
	evidencetest.Unchanged(t, dir, old)
	r := diagnose(t, []evidence.Spec{{Name: "m1", Where: filepath.Join(dir, "m1")}, {Name: "old.db", Where: db}})
	if !slices.ContainsFunc(r.Findings, func(f check.Finding) bool {
		return f.Check == check.K04 && slices.Equal(f.Members, []string{"old.db"})
	}) {
		t.Errorf("%s: nothing says that the backup is damaged", r.Verdict.Summary)
	}
}

// halveRecord adds half of a record.
func halveRecord(t *testing.T, member string) {
	t.Helper()
	clustertest.EditDB(func(tx *bbolt.Tx) error {
		b := tx.Bucket([]byte("key"))
		k, v := b.Cursor().First()
		k = slices.Clone(k)
		k[7]++
		return b.Put(append(k[:8], '-', 0, 0, 0, 0, 0, 0, 0, 0), v[:len(v)/2])
	})(t, member)
}

func appendTo(t *testing.T, path string, b []byte) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.Write(b); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
}

// TestBackupBeforeRestoreSameIDs: a cluster that was restored with the IDs that it had continues the history of a
// backup from before, of whose index its log knows nothing. The backup is set apart, unless it holds what the cluster
// never had, or the entries of this log.
func TestBackupBeforeRestoreSameIDs(t *testing.T) {
	keys := func(edit func(b *bbolt.Bucket) error) clustertest.Damage {
		return clustertest.EditDB(func(tx *bbolt.Tx) error { return edit(tx.Bucket([]byte("key"))) })
	}
	for name, v := range map[string]struct {
		of     string
		change clustertest.Damage
		cut    bool // without the trailer
		apart  bool
		class  check.Class
	}{
		"from before": {of: "backup.db", apart: true, class: check.ClassHealthy},
		"after damage": {of: "backup.db", apart: true, class: check.ClassBackupDamaged,
			change: keys(func(b *bbolt.Bucket) error {
				c := b.Cursor()
				for k, _ := c.Last(); binary.BigEndian.Uint64(k) > 8; k, _ = c.Last() {
					if err := c.Delete(); err != nil {
						return err
					}
				}
				return nil
			})},
		"with another history": {of: "backup.db", cut: true, class: check.ClassDataDivergence,
			change: keys(func(b *bbolt.Bucket) error {
				k, _ := b.Cursor().First()
				v := slices.Clone(b.Get(k))
				v[len(v)-1] ^= 1
				return b.Put(slices.Clone(k), v)
			})},
		"from after": {of: "node2/member/snap/db", class: check.ClassHealthy},
		"from after, without its last record": {of: "node2/member/snap/db", class: check.ClassDataDivergence,
			change: keys(func(b *bbolt.Bucket) error {
				k, _ := b.Cursor().Last()
				return b.Delete(slices.Clone(k))
			})},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := evidencetest.Incident(t, "t-restored-same-ids")
			old := t.TempDir()
			if err := os.Mkdir(filepath.Join(old, "snap"), 0o700); err != nil {
				t.Fatal(err)
			}
			db := filepath.Join(old, "snap", "db")
			if err := evidencetest.CopyTo(filepath.Join(dir, filepath.FromSlash(v.of)), db); err != nil {
				t.Fatal(err)
			}
			if v.change != nil {
				v.change(t, old)
			}
			if st, err := os.Stat(db); err != nil || v.cut && os.Truncate(db, st.Size()&^4095) != nil {
				t.Fatal(err)
			}
			evidencetest.Unchanged(t, dir, old)
			r := diagnose(t, append(specsOf(t, dir), evidence.Spec{Name: "old.db", Where: db}))
			apart := slices.ContainsFunc(r.Findings, func(f check.Finding) bool {
				return f.Kind == check.KindBackupBeforeRestore && slices.Equal(f.Members, []string{"old.db"})
			})
			if apart != v.apart || r.Verdict.Class != v.class {
				t.Errorf("set apart %v, %s: %s", apart, r.Verdict.Class, r.Verdict.Summary)
			}
		})
	}
}

// TestCompareWithBackupBeforeRestore: its index says nothing here, so a comparison leaves it out, and the history of a
// key does not say what the log's entries did to it.
func TestCompareWithBackupBeforeRestore(t *testing.T) {
	dir := evidencetest.Incident(t, "t-restored-same-ids")
	specs := append(specsOf(t, dir), evidence.Spec{Name: "old.db", Where: filepath.Join(dir, "backup.db")})
	c, err := compare.Compare(t.Context(), specs, compare.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if out := c.Window.LeftOut; len(out) != 1 || !strings.Contains(out["old.db"], "from before a restore") ||
		len(c.Window.Revisions) != 3 {
		t.Errorf("left out %v, revisions %v", out, c.Window.Revisions)
	}
	h, err := compare.History(t.Context(), []byte("/app/3"), specs, compare.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if len(h.Entries) == 0 {
		t.Error("no entry")
	}
	for _, e := range h.Entries {
		if !strings.HasPrefix(e.Outcomes["old.db"], "not known") || !strings.HasPrefix(e.Outcomes["node1"], "applied") {
			t.Errorf("entry %d: %v", e.Index, e.Outcomes)
		}
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

// TestBackupOfAnotherTerm: a backup has not the term of the entry at its index in the log of a restored cluster. It may
// be from before the restore, or altered; only a database of a data dir shows that it is of this log.
func TestBackupOfAnotherTerm(t *testing.T) {
	term := clustertest.EditDB(func(tx *bbolt.Tx) error {
		return tx.Bucket([]byte("meta")).Put([]byte("term"), binary.BigEndian.AppendUint64(nil, 9))
	})
	dir := evidencetest.Copy(t, evidencetest.Incident(t, "t-restored-same-ids"))
	term(t, filepath.Join(dir, "node2", "member"))
	old := evidence.Spec{Name: "old.db", Where: filepath.Join(dir, "node2", "member", "snap", "db")}
	node3 := evidence.Spec{Name: "node3", Where: filepath.Join(dir, "node3")}
	named := func(r *compare.Report, kind check.Kind) *check.Finding {
		at := slices.IndexFunc(r.Findings, func(f check.Finding) bool { return f.Kind == kind })
		if at < 0 {
			return nil
		}
		return &r.Findings[at]
	}
	r := diagnose(t, []evidence.Spec{node3, old})
	if f := named(r, check.KindBackupTermDiffers); f == nil || named(r, check.KindBackupBeforeRestore) != nil {
		t.Errorf("next to a database: %s", r.Verdict.Summary)
	}
	if err := os.Remove(filepath.Join(dir, "node3", "member", "snap", "db")); err != nil {
		t.Fatal(err)
	}
	r = diagnose(t, []evidence.Spec{node3, old})
	f := named(r, check.KindBackupBeforeRestore)
	if f == nil || f.Class != check.ClassInconclusive || !strings.HasSuffix(f.Title, "or was altered") ||
		f.Evidence[0].Observed != "9" || f.Evidence[0].Expected != "3, the term of entry 28" ||
		named(r, check.KindBackupTermDiffers) != nil {
		t.Errorf("without one: %+v, %s", f, r.Verdict.Summary)
	}
}
