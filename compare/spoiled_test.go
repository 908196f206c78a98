package compare_test

import (
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"go.etcd.io/bbolt"
	"go.etcd.io/etcd/api/v3/mvccpb"

	"github.com/etcd-medic/etcd-medic/compare"
	"github.com/etcd-medic/etcd-medic/compare/check"
	"github.com/etcd-medic/etcd-medic/compare/evidence/clustertest"
	"github.com/etcd-medic/etcd-medic/compare/evidence/evidencetest"
)

// spoiledSets are sound sets of which one node was spoiled: the verdict must name what was done, keep the others as the
// best and blame nobody else. Where a set has a lagging or otherwise ordinary member, that one is no second culprit.
var spoiledSets = []struct {
	name, incident string
	spoil          clustertest.Damage
	class, cause   string
	best           []string
}{
	{"log torn long before its end", "m-healthy-3.5", tearLog(0.6, nil), "wal-damage", "wal-torn-tail",
		[]string{"node2", "node4"}},
	{"log torn beside a lagging member", "k-lagging-node", tearLog(0.98, nil), "wal-damage", "wal-torn-tail",
		[]string{"node2"}},
	{"noise up to the end of the log", "m-healthy-3.7", tearLog(0.9, noise(4000)), "wal-damage", "wal-torn-tail",
		[]string{"node2", "node4"}},
	{"last leaf of bucket key is noise", "m-healthy-3.6", inLastKeyLeaf(0, noise(4096)), "db-damage",
		"bbolt-page-damage", []string{"node2", "node4"}},
	{"flags of a row that bbolt never writes", "m-healthy-3.7", inLastKeyLeaf(16+16, []byte{0x40}), "db-damage",
		"bbolt-page-damage", []string{"node2", "node4"}},
	{"a page that claims one more than its rows need", "k-lagging-node", inLastKeyLeaf(12, []byte{1}), "db-damage",
		"bbolt-page-damage", []string{"node2"}},
	{"root of bucket key lies beyond the file", "m-healthy-3.6", keyRootBeyondFile, "db-damage", "bbolt-page-damage",
		[]string{"node2", "node4"}},
	{"live key taken out below the compaction", "l-compaction-skew", clustertest.EditDB(dropOldLive), "data-divergence",
		"rows-changed-outside-the-log", []string{"node2", "node3"}},
	{"revision taken out of the middle", "m-healthy-3.5",
		deleteRow("key", clustertest.RevisionKey(200)),
		"data-divergence", "rows-changed-outside-the-log", []string{"node2", "node4"}},
	{"no consistent index", "m-healthy-3.6", deleteRow("meta", []byte("consistent_index")), "",
		"cindex-missing", []string{"node2", "node4"}},
}

func TestSpoiledSets(t *testing.T) {
	for _, v := range spoiledSets {
		t.Run(v.name, func(t *testing.T) {
			t.Parallel()
			dir := evidencetest.Copy(t, evidencetest.Incident(t, v.incident))
			v.spoil(t, filepath.Join(dir, "node1", "member"))
			r := diagnose(t, specsOf(t, dir))
			if v.class != "" && string(r.Verdict.Class) != v.class {
				t.Errorf("class %s (%s), want %s", r.Verdict.Class, r.Verdict.Summary, v.class)
			}
			if c := r.Verdict.Cause; c == nil || string(*c) != v.cause {
				t.Errorf("causes %+v, want %s first", r.Causes, v.cause)
			}
			if best := slices.Sorted(slices.Values(r.Best.Members)); !slices.Equal(best, v.best) {
				t.Errorf("best %v (%s), want %v", best, r.Best.Why, v.best)
			}
			for _, f := range r.Findings {
				if f.Check != "K01" && f.Severity.Rank() >= check.Error.Rank() &&
					!slices.Equal(f.Members, []string{"node1"}) {
					t.Errorf("%s blames %v: %s", f.ID, f.Members, f.Title)
				}
			}
		})
	}
}

// TestTornLogAlone: what the lost entries did to the database is no contradiction to the log that is left.
func TestTornLogAlone(t *testing.T) {
	dir := evidencetest.Copy(t, evidencetest.Incident(t, "m-healthy-3.7"))
	tearLog(0.6, nil)(t, filepath.Join(dir, "node1", "member"))
	r := diagnose(t, specsOf(t, dir)[:1])
	if r.Verdict.Class != "wal-damage" || r.Verdict.Cause == nil || *r.Verdict.Cause != "wal-torn-tail" {
		t.Errorf("verdict %s, causes %+v", r.Verdict.Class, r.Causes)
	}
	if fs := findings(r, "", "K03", "A02", "L03"); len(fs) > 0 {
		t.Errorf("%s: %s", fs[0].ID, fs[0].Title)
	}
}

// TestQuorumLostWithoutAllSources: of the misconfigured cluster only the members with the new configuration are at
// hand.
func TestQuorumLostWithoutAllSources(t *testing.T) {
	specs := specsOf(t, evidencetest.Incident(t, "h-misconfigured-member-add"))
	r := diagnose(t, specs[:2])
	if r.Verdict.Class != "membership" || r.Verdict.Cause == nil || *r.Verdict.Cause != "quorum-lost-after-member-add" {
		t.Errorf("verdict %s, causes %+v", r.Verdict.Class, r.Causes)
	}
}

// TestBackupWithBytesAppended: a line end behind the sha256 hides it, and a restore refuses the file.
func TestBackupWithBytesAppended(t *testing.T) {
	b, err := os.ReadFile(filepath.Join(evidencetest.Incident(t, "o-backup-good"), "backup.db"))
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "backup.db"), append(b, '\n'), 0o600); err != nil {
		t.Fatal(err)
	}
	r := diagnose(t, specsOf(t, dir))
	if r.Verdict.Class != "backup-damaged" ||
		!slices.ContainsFunc(r.Causes, func(c compare.Cause) bool { return c.ID == "backup-hash-mismatch" }) {
		t.Errorf("verdict %s, causes %+v", r.Verdict.Class, r.Causes)
	}
}

func deleteRow(bucket string, key []byte) clustertest.Damage {
	return clustertest.EditDB(func(tx *bbolt.Tx) error { return tx.Bucket([]byte(bucket)).Delete(key) })
}

func noise(n int) []byte {
	r := rand.New(rand.NewPCG(7, 7))
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(r.Uint32())
	}
	return b
}

// tearLog puts with, or zeros, over the log from the sector border behind that part of its data up to the end.
func tearLog(part float64, with []byte) clustertest.Damage {
	return func(t *testing.T, node string) {
		t.Helper()
		segs, err := filepath.Glob(filepath.Join(node, "wal", "*.wal"))
		if err != nil || len(segs) == 0 {
			t.Fatal("no segment ", err)
		}
		last := slices.Max(segs)
		b, err := os.ReadFile(last)
		if err != nil {
			t.Fatal(err)
		}
		end := 0
		for end+8 <= len(b) {
			w := binary.LittleEndian.Uint64(b[end:])
			if w == 0 {
				break
			}
			end += 8 + int(w&(1<<56-1))
			if w>>63 == 1 {
				end += int(w >> 56 & 7)
			}
		}
		from := (int(float64(end)*part)/512 + 1) * 512
		writeIn(t, last, int64(from), append(slices.Clone(with), make([]byte, max(0, end-from-len(with)))...))
	}
}

func writeIn(t *testing.T, file string, at int64, b []byte) {
	t.Helper()
	f, err := os.OpenFile(file, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteAt(b, at); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
}

// inLastKeyLeaf overwrites bytes in the leaf page that holds the newest revision.
func inLastKeyLeaf(at int64, with []byte) clustertest.Damage {
	return func(t *testing.T, node string) {
		t.Helper()
		file, page := lastKeyLeaf(t, node)
		writeIn(t, file, page*4096+at, with)
	}
}

func lastKeyLeaf(t *testing.T, node string) (file string, page int64) {
	t.Helper()
	file = filepath.Join(node, "snap", "db")
	db, err := bbolt.Open(file, 0o600, &bbolt.Options{NoFreelistSync: true})
	if err != nil {
		t.Fatal(err)
	}
	newest := ""
	err = db.View(func(tx *bbolt.Tx) error {
		raw, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		for id := 2; ; id++ {
			p, err := tx.Page(id)
			if err != nil || p == nil {
				return err
			}
			if p.Type != "leaf" || p.Count == 0 {
				continue
			}
			head := raw[id*4096+16:]
			pos, n := binary.LittleEndian.Uint32(head[4:]), binary.LittleEndian.Uint32(head[8:])
			if key := string(head[pos : pos+n]); (n == 17 || n == 18) && key[8] == '_' && key > newest {
				page, newest = int64(id), key
			}
			id += p.OverflowCount
		}
	})
	if err == nil {
		err = db.Close()
	}
	if err != nil || page == 0 {
		t.Fatalf("no leaf page of bucket key (%v)", err)
	}
	return file, page
}

// keyRootBeyondFile lets the root of bucket key point behind the end of the file.
func keyRootBeyondFile(t *testing.T, node string) {
	t.Helper()
	file := filepath.Join(node, "snap", "db")
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	meta := b[16:]
	if other := b[4096+16:]; binary.LittleEndian.Uint64(other[48:]) > binary.LittleEndian.Uint64(meta[48:]) {
		meta = other
	}
	root := int(binary.LittleEndian.Uint64(meta[16:])) * 4096
	for i := range int(binary.LittleEndian.Uint16(b[root+10:])) {
		at := root + 16 + 16*i
		key := at + int(binary.LittleEndian.Uint32(b[at+4:]))
		n := int(binary.LittleEndian.Uint32(b[at+8:]))
		if string(b[key:key+n]) == "key" {
			writeIn(t, file, int64(key+n), binary.LittleEndian.AppendUint64(nil, 1<<20))
			return
		}
	}
	t.Fatal("no bucket key")
}

// dropOldLive takes out the oldest record whose key has no other: a compaction has kept it because the key lives on.
func dropOldLive(tx *bbolt.Tx) error {
	records, oldest := map[string]int{}, map[string][]byte{}
	var order []string
	b := tx.Bucket([]byte("key"))
	err := b.ForEach(func(k, v []byte) error {
		var kv mvccpb.KeyValue
		if err := kv.Unmarshal(v); err != nil {
			return err
		}
		key := string(kv.Key)
		if records[key]++; records[key] == 1 {
			oldest[key] = slices.Clone(k)
			order = append(order, key)
		}
		return nil
	})
	if err != nil {
		return err
	}
	for _, key := range order {
		if records[key] == 1 {
			return b.Delete(oldest[key])
		}
	}
	return errors.New("every key has a history")
}
