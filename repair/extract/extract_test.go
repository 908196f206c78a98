package extract_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.etcd.io/bbolt"
	"go.etcd.io/etcd/pkg/v3/traceutil"

	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/compare/evidence/evidencetest"
	"github.com/etcd-medic/etcd-medic/dumpdb"
	"github.com/etcd-medic/etcd-medic/refusal"
	"github.com/etcd-medic/etcd-medic/repair/extract"
)

func TestMain(m *testing.M) {
	if os.Getenv(asEtcdctl) != "" {
		os.Exit(fakeEtcdctl(os.Args[1:]))
	}
	evidencetest.Main(m)
}

// TestStateIsTheServers takes the state at every revision and holds it against what the server showed there, in memory
// and through scratch files.
func TestStateIsTheServers(t *testing.T) {
	path := filepath.Join(t.TempDir(), "db")
	states := history(t, path, 300)
	for rev, want := range states {
		if rev%9 != 0 {
			continue
		}
		for memory, salvage := range map[int]bool{0: false, 2000: false, 1 << 20: true} {
			out := filepath.Join(t.TempDir(), "out")
			res := run(t, path, extract.Options{Format: extract.JSONL, Rev: rev, Out: out, Memory: memory,
				Salvage: salvage})
			got := []kv{}
			if !res.Empty() {
				for _, l := range lines(t, out) {
					got = append(got, kv{string(l.Key), string(l.Value), l.CreateRevision, l.ModRevision, l.Version,
						int64(l.Lease)})
				}
			}
			if d := cmp.Diff(want, got); d != "" {
				t.Fatalf("revision %d, memory %d (-server +extract):\n%s", rev, memory, d)
			}
			if res.Short() || res.Keys != int64(len(want)) || res.Revision != rev {
				t.Fatalf("revision %d: %+v", rev, res)
			}
		}
	}
}

// TestBackupIsTheState opens the backup of every 25th revision with etcd's own store: same content, same revision,
// compacted below.
func TestBackupIsTheState(t *testing.T) {
	path := filepath.Join(t.TempDir(), "db")
	states := history(t, path, 200)
	for rev, want := range states {
		if rev%25 != 0 {
			continue
		}
		out := filepath.Join(t.TempDir(), "out.db")
		res := run(t, path, extract.Options{Format: extract.Backup, Rev: rev, Out: out, Leases: extract.LeaseDetach})
		soundBackup(t, out, res)
		s, done := store(t, evidencetest.Copy(t, out))
		for i := range want {
			want[i].Lease = 0
		}
		if d := cmp.Diff(want, held(t, s, 0)); d != "" || s.Rev() != rev || s.FirstRev() != rev {
			t.Errorf("revision %d: server says %d, first %d (-server then +server on the backup):\n%s", rev, s.Rev(),
				s.FirstRev(), d)
		}
		done()
	}
}

// TestBackupOfUnprovenSource: a backup of a source whose sha256 trailer does not fit has none: a new one would certify
// a value that may be wrong.
func TestBackupOfUnprovenSource(t *testing.T) {
	src := filepath.Join(evidencetest.Incident(t, "o-backup-bit-flip"), "backup.db")
	out := filepath.Join(t.TempDir(), "out.db")
	res := run(t, src, extract.Options{Format: extract.Backup, Out: out})
	if st, err := os.Stat(out); err != nil || st.Size()%512 != 0 || res.SHA256 != "" || res.Lost.Trailer != "mismatch" {
		t.Errorf("%v, %+v", err, res)
	}
}

// TestLengthOfSource: a backup with a cut trailer, or with another file after its end, is not extracted in silence.
func TestLengthOfSource(t *testing.T) {
	src := filepath.Join(t.TempDir(), "made.db")
	run(t, smallDB(t), extract.Options{Format: extract.Backup, Out: src})
	b, err := os.ReadFile(src)
	if err != nil {
		t.Fatal(err)
	}
	for want, content := range map[dumpdb.Ending][]byte{"": b, dumpdb.EndsInTrailer: b[:len(b)-9],
		dumpdb.EndsInsideOfPage: append(b[:len(b):len(b)], b...)} {
		path := filepath.Join(t.TempDir(), "b.db")
		if err := os.WriteFile(path, content, 0o600); err != nil {
			t.Fatal(err)
		}
		res := run(t, path, extract.Options{Format: extract.Backup, Out: filepath.Join(t.TempDir(), "out.db")})
		if res.Lost.Ending != want || res.Short() != (want != "") || (res.SHA256 == "") != (want != "") {
			t.Errorf("%q: %+v", want, res)
		}
	}
}

// soundBackup wants a file without any damage, violated truth or wrong trailer.
func soundBackup(t testing.TB, path string, res *extract.Result) {
	t.Helper()
	db, err := dumpdb.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	tr, err := db.Trailer()
	if err != nil || tr.State != "match" || tr.Computed != res.SHA256 {
		t.Errorf("trailer %+v %v, result %s", tr, err, res.SHA256)
	}
	st, err := db.KVStats(context.Background())
	if err != nil || len(st.Violations) > 0 {
		t.Errorf("%v %+v", err, st)
	}
	if rep, err := db.Check(context.Background()); err != nil || len(rep.Damage) > 0 {
		t.Errorf("%v %+v", err, rep)
	}
	if m := db.MissingBuckets(); len(m) > 0 {
		t.Errorf("buckets %v are missing", m)
	}
}

// TestBackupWithHistory keeps every revision: the server answers for all of them as before.
func TestBackupWithHistory(t *testing.T) {
	path := filepath.Join(t.TempDir(), "db")
	states := history(t, path, 120)
	out := filepath.Join(t.TempDir(), "out.db")
	res := run(t, path, extract.Options{Format: extract.Backup, History: true, Rev: 90, Out: out,
		Leases: extract.LeaseDetach})
	soundBackup(t, out, res)
	s, done := store(t, evidencetest.Copy(t, out))
	defer done()
	for rev, want := range states {
		if rev > 90 || rev%4 != 0 {
			continue
		}
		for i := range want {
			want[i].Lease = 0
		}
		if d := cmp.Diff(want, held(t, s, rev)); d != "" {
			t.Fatalf("revision %d:\n%s", rev, d)
		}
	}
}

// smallRows are the rows of all buckets but key, as BUCKET/KEY; a lease is named by its ID, a mark by its revision.
func smallRows(t testing.TB, path string) (out []string) {
	t.Helper()
	db, err := bbolt.Open(path, 0o400, &bbolt.Options{ReadOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	err = db.View(func(tx *bbolt.Tx) error {
		return tx.ForEach(func(name []byte, b *bbolt.Bucket) error {
			if string(name) == "key" {
				return nil
			}
			return b.ForEach(func(k, v []byte) error {
				switch {
				case string(name) == "lease":
					k = fmt.Appendf(nil, "%x", bytes.TrimLeft(k, "\x00"))
				case strings.HasSuffix(string(k), "CompactRev"):
					k = fmt.Appendf(k, "=%d", binary.BigEndian.Uint64(v))
				}
				out = append(out, string(name)+"/"+string(k))
				return nil
			})
		})
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// TestBackupCarries: a backup has the rows of the source, but no alarms, no leases without a key of the backup, and
// the marks of its own revision.
func TestBackupCarries(t *testing.T) {
	path := filepath.Join(t.TempDir(), "db")
	s, done := store(t, path)
	for i := range 6 {
		s.Put([]byte("plain"), fmt.Append(nil, i), 0)
	}
	s.Put([]byte("leased"), []byte("l"), 0x77)
	c, err := s.Compact(traceutil.TODO(), 4)
	if err != nil {
		t.Fatal(err)
	}
	<-c
	done()
	grant(t, path, 0x77, 500)
	grant(t, path, 0x78, 500)
	putRow(t, path, "alarm", []byte("a"), []byte("b"))
	putRow(t, path, "meta", []byte("term"), binary.BigEndian.AppendUint64(nil, 3))
	putRow(t, path, "cluster", []byte("clusterVersion"), []byte("3.5.0"))
	leased := extract.Selection{Keys: [][]byte{[]byte("leased")}}
	plain := extract.Selection{Keys: [][]byte{[]byte("plain")}}
	marks := " meta/finishedCompactRev=8 meta/scheduledCompactRev=8"
	for name, c := range map[string]struct {
		o     extract.Options
		keys  int64
		wants string
	}{
		"all":    {extract.Options{}, 2, "lease/77 lease/78" + marks},
		"leased": {extract.Options{Select: leased}, 1, "lease/77" + marks},
		"plain":  {extract.Options{Select: plain}, 1, marks[1:]},
		"detach": {extract.Options{Leases: extract.LeaseDetach}, 2, marks[1:]},
		"skip":   {extract.Options{Leases: extract.LeaseSkip}, 1, marks[1:]},
		"history": {extract.Options{History: true}, 0,
			"lease/77 lease/78 meta/finishedCompactRev=4 meta/scheduledCompactRev=4"},
	} {
		t.Run(name, func(t *testing.T) {
			c.o.Format, c.o.Out = extract.Backup, filepath.Join(t.TempDir(), "out")
			res := run(t, path, c.o)
			soundBackup(t, c.o.Out, res)
			want := "cluster/clusterVersion " + c.wants + " meta/term"
			if got := strings.Join(smallRows(t, c.o.Out), " "); got != want {
				t.Errorf("rows %s\n   want %s", got, want)
			}
			if res.Keys != c.keys || len(res.Notes) != 1 || res.CompactRevision != 4 || res.Output != c.o.Out {
				t.Errorf("%+v", res)
			}
		})
	}
}

// TestRevision refuses what is compacted and what is to come; the first and the last revision that exist are extracted.
func TestRevision(t *testing.T) {
	path := filepath.Join(t.TempDir(), "db")
	s, done := store(t, path)
	for i := range 6 { // revisions 2 to 7
		s.Put([]byte("a"), fmt.Append(nil, i), 0)
	}
	c, err := s.Compact(traceutil.TODO(), 4)
	if err != nil {
		t.Fatal(err)
	}
	<-c
	done()
	for rev, want := range map[int64]string{3: "has been compacted", 4: "", 7: "", 8: "is a future revision"} {
		res, err := extract.Run(t.Context(), path,
			extract.Options{Format: extract.JSONL, Rev: rev, Stream: io.Discard})
		switch {
		case want != "":
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("revision %d: %v", rev, err)
			}
		case err != nil || res.Keys != 1 || res.Revision != rev:
			t.Errorf("revision %d: %+v, %v", rev, res, err)
		}
	}
}

// TestDeleted brings deleted keys with the value they had, and tells those whose value is compacted away.
func TestDeleted(t *testing.T) {
	path := filepath.Join(t.TempDir(), "db")
	s, done := store(t, path)
	s.Put([]byte("gone"), []byte("last"), 0)
	s.Put([]byte("stays"), []byte("x"), 0)
	s.DeleteRange([]byte("gone"), nil) // 4
	for range 60 {
		s.Put([]byte("zzz"), bytes.Repeat([]byte("filler"), 100), 0)
	}
	s.Commit()
	s.Put([]byte("early"), []byte("y"), 0)
	done()
	out := filepath.Join(t.TempDir(), "out")
	res := run(t, path, extract.Options{Format: extract.JSONL, Deleted: true, Out: out})
	got := lines(t, out)
	if len(got) != 4 || got[1].Key != "gone" || got[1].Value != "last" ||
		got[1].DeletedRevision != (dumpdb.Rev{Main: 4}) || res.DeletedKeys != 1 {
		t.Errorf("%+v %+v", got, res)
	}
	res = run(t, path, extract.Options{Format: extract.JSONL,
		Select: extract.Selection{Keys: [][]byte{[]byte("gone"), []byte("never")}}})
	if !res.Empty() || !res.Short() || len(res.Lost.NotFound) != 2 {
		t.Errorf("%+v", res)
	}
	s, done = store(t, path)
	c, err := s.Compact(traceutil.TODO(), 4)
	if err != nil {
		t.Fatal(err)
	}
	<-c
	done()
	res = run(t, path, extract.Options{Format: extract.JSONL, Deleted: true,
		Select: extract.Selection{Keys: [][]byte{[]byte("gone")}}})
	// Pages that are not in use still hold what the compaction dropped.
	out = filepath.Join(t.TempDir(), "free")
	free := run(t, path, extract.Options{Format: extract.JSONL, Deleted: true, Salvage: true, Out: out})
	if got := lines(t, out); len(got) != 4 || got[1].Key != "gone" || got[1].Value != "last" || !got[1].Deleted ||
		got[1].Origin != "free" || free.DeletedKeys != 1 || free.Short() {
		t.Errorf("%+v %+v", got, free)
	}
	if !res.Empty() || res.Lost.NoValueCount != 1 || string(res.Lost.NoValue[0]) != "gone" || !res.Short() {
		t.Errorf("%+v", res)
	}
}

func TestRefusals(t *testing.T) {
	path := filepath.Join(t.TempDir(), "db")
	history(t, path, 20)
	var refused *refusal.Error
	if _, err := extract.Run(context.Background(), path,
		extract.Options{Format: extract.JSONL, Out: path}); !errors.As(err, &refused) {
		t.Errorf("over an existing file: %v", err)
	}
	out := filepath.Join(t.TempDir(), "out")
	if _, err := extract.Run(context.Background(), path,
		extract.Options{Format: extract.JSONL, Rev: 10000, Out: out}); !errors.As(err, &refused) {
		t.Errorf("future revision: %v", err)
	}
	for name, o := range map[string]extract.Options{
		"history and deleted":       {Format: extract.JSONL, History: true, Deleted: true},
		"history in a script":       {Format: extract.Put, History: true},
		"partial history in backup": {Format: extract.Backup, History: true, Select: extract.Selection{Kind: "Pod"}},
		"deleted in backup":         {Format: extract.Backup, Deleted: true},
		"absent in put":             {Format: extract.Put, OnlyIfAbsent: true},
		"history salvaged":          {Format: extract.Backup, History: true, Salvage: true},
		"a backup to a stream":      {Format: extract.Backup, Stream: io.Discard},
		"manifests to a stream":     {Format: extract.YAML, Stream: io.Discard},
		"an unknown format":         {Format: "csv"},
		"inside of a source": {Format: extract.JSONL,
			Inputs: []evidence.Spec{{Where: filepath.Dir(path)}}},
	} {
		o.Out = out
		if o.Inputs != nil {
			o.Out = filepath.Join(filepath.Dir(path), "inside")
		}
		if _, err := extract.Run(context.Background(), path, o); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	if _, err := extract.Run(context.Background(), out, extract.Options{Format: extract.JSONL, Out: out}); err == nil {
		t.Error("without a source: no error")
	}
	if _, err := os.Stat(out); err == nil {
		t.Error("a refused run left an output")
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	for _, f := range extract.Formats() {
		if _, err := extract.Run(ctx, path, extract.Options{Format: extract.Format(f), Out: out}); !errors.Is(err,
			context.Canceled) {
			t.Errorf("%s: %v", f, err)
		}
	}
	if left, _ := filepath.Glob(out + "*"); len(left) > 0 {
		t.Errorf("interrupted runs left %v", left)
	}
}

// TestBackupTransactions: a backup commits as many records at once as a server does.
func TestBackupTransactions(t *testing.T) {
	path := filepath.Join(t.TempDir(), "db")
	s, done := store(t, path)
	for i := range 10_000 {
		s.Put(fmt.Appendf(nil, "%05d", i), []byte("v"), 0)
	}
	done()
	commits := func(keys int64) uint64 {
		out := filepath.Join(t.TempDir(), "out.db")
		res := run(t, path, extract.Options{Format: extract.Backup, Rev: 1 + keys, Out: out})
		db, err := dumpdb.Open(out)
		if err != nil || res.Keys != keys {
			t.Fatal(err, res)
		}
		defer db.Close()
		return db.Meta().Txid
	}
	if few, many := commits(9_999), commits(10_000); many != few+1 {
		t.Errorf("transaction %d, and %d with one record more", few, many)
	}
}

// TestBackupOfLargeValues: a transaction is in memory until it ends, so one with large values ends earlier.
func TestBackupOfLargeValues(t *testing.T) {
	path, out := filepath.Join(t.TempDir(), "db"), filepath.Join(t.TempDir(), "out.db")
	s, done := store(t, path)
	for i := range 40 {
		s.Put(fmt.Appendf(nil, "%05d", i), make([]byte, 1<<20), 0)
	}
	done()
	for rev, want := range map[int64]uint64{5: 0, 41: 2} {
		small := filepath.Join(t.TempDir(), "small.db")
		run(t, path, extract.Options{Format: extract.Backup, Rev: 2, Out: small})
		run(t, path, extract.Options{Format: extract.Backup, Rev: rev, Out: out})
		if more := txid(t, out) - txid(t, small); more != want {
			t.Errorf("revision %d: %d transactions more than for one record, want %d", rev, more, want)
		}
		if err := os.Remove(out); err != nil {
			t.Fatal(err)
		}
	}
}

func txid(t *testing.T, path string) uint64 {
	t.Helper()
	db, err := dumpdb.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = db.Close() }() // only read
	return db.Meta().Txid
}

// TestNothingSelected: no key makes no output, and the result names none.
func TestNothingSelected(t *testing.T) {
	path := filepath.Join(t.TempDir(), "db")
	s, done := store(t, path)
	s.Put([]byte("a"), []byte("v"), 0)
	done()
	for _, format := range []extract.Format{extract.Backup, extract.JSONL, extract.Put} {
		out := filepath.Join(t.TempDir(), "out")
		res := run(t, path, extract.Options{Format: format, Out: out,
			Select: extract.Selection{Prefixes: [][]byte{[]byte("b")}}})
		if _, err := os.Lstat(out); !res.Empty() || res.Output != "" || !os.IsNotExist(err) {
			t.Errorf("%s: %+v, %v", format, res, err)
		}
	}
}
