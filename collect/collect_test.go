package collect

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/etcd-medic/etcd-medic/compare"
	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/compare/evidence/archive"
	"github.com/etcd-medic/etcd-medic/compare/evidence/clustertest"
	"github.com/etcd-medic/etcd-medic/compare/evidence/evidencetest"
	"github.com/etcd-medic/etcd-medic/dumplog"
	"github.com/etcd-medic/etcd-medic/refusal"
)

func TestMain(m *testing.M) { evidencetest.Main(m) }

// member is a private copy of a healthy member's data dir.
func member(t *testing.T, incident string) string {
	t.Helper()
	return evidencetest.Copy(t, filepath.Join(evidencetest.Incident(t, incident), "node1"))
}

func verdict(t *testing.T, where string) string {
	t.Helper()
	r, err := compare.Diagnose(context.Background(), []evidence.Spec{{Where: where}}, compare.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range r.Findings {
		t.Logf("%s: %s %s", where, f.Severity, f.Title)
	}
	return string(r.Verdict.Class)
}

// What is collected of a server that does nothing is the data dir, with the same diagnosis, and the data dir is left as
// it was.
func TestCollectedIsTheDataDir(t *testing.T) {
	for _, incident := range []string{"gen-healthy-3.4", "m-healthy-3.5", "m-healthy-3.6", "m-healthy-3.7"} {
		dir := member(t, incident)
		evidencetest.Unchanged(t, dir)
		out := filepath.Join(t.TempDir(), "n.tar.zst")
		m, err := Run(context.Background(), Options{DataDir: dir, Out: out})
		if err != nil {
			t.Fatalf("%s: %v", incident, err)
		}
		if m.Attempts != 1 || len(m.Proven) < 3 || m.ConsistentIndex == 0 || m.LastIndex < m.ConsistentIndex {
			t.Errorf("%s: %+v", incident, m)
		}
		want, got := verdict(t, dir), verdict(t, out)
		if got != want {
			t.Errorf("%s: the archive is %s, the data dir %s", incident, got, want)
		}
		same(t, dir, out)
	}
}

// same compares every file of the data dir that counts with the archive.
func same(t *testing.T, dir, file string) {
	t.Helper()
	to := t.TempDir()
	if err := archive.Unpack(context.Background(), file, to); err != nil {
		t.Fatal(err)
	}
	for _, sub := range []string{"wal/*.wal", "snap/*.snap", "snap/db"} {
		names, err := filepath.Glob(filepath.Join(dir, "member", filepath.FromSlash(sub)))
		if err != nil {
			t.Fatal(err)
		}
		for _, n := range names {
			rel, _ := filepath.Rel(dir, n)
			a, err1 := os.ReadFile(n)
			b, err2 := os.ReadFile(filepath.Join(to, filepath.Base(dir), rel))
			if err := errors.Join(err1, err2); err != nil || !bytes.Equal(a, b) {
				t.Errorf("%s differs (%d and %d bytes): %v", rel, len(a), len(b), err)
			}
		}
	}
	b, err := os.ReadFile(filepath.Join(to, filepath.Base(dir), ManifestName))
	var m Manifest
	if err = errors.Join(err, json.Unmarshal(b, &m)); err != nil || len(m.Files) == 0 {
		t.Errorf("%v: %+v", err, m)
	}
}

// busy is a member that does something at the moment in which its database is asked for, and at the end of that.
type busy struct {
	file
	before, after func(n int)
	n             int
}

func (b *busy) begin(ctx context.Context) (io.Reader, int64, func() error, error) {
	b.n++
	if b.before != nil {
		b.before(b.n)
	}
	r, size, end, err := b.file.begin(ctx)
	if err != nil {
		return nil, 0, nil, err
	}
	return r, size, func() error {
		if b.after != nil {
			b.after(b.n)
		}
		return end()
	}, nil
}

func collected(t *testing.T, dir string, b *busy, o Options) (*Manifest, string, error) {
	t.Helper()
	o.DataDir, o.Out = dir, filepath.Join(t.TempDir(), "n.tar.zst")
	if err := o.fill(); err != nil {
		t.Fatal(err)
	}
	c := &collection{o: o, started: time.Now()}
	c.wal, c.snap, c.db = paths(dir, "")
	b.file = file{path: c.db, scratch: t.TempDir()}
	c.source = b
	m, err := c.run(context.Background())
	if left, _ := filepath.Glob(filepath.Join(filepath.Dir(o.Out), "*")); err != nil && len(left) > 0 {
		t.Errorf("left behind: %q", left)
	}
	return m, o.Out, err
}

func glob(t *testing.T, pattern string) []string {
	t.Helper()
	names, err := filepath.Glob(pattern)
	if err != nil || len(names) == 0 {
		t.Fatalf("%s: %q, %v", pattern, names, err)
	}
	return names
}

// Files that the server purges while the database is copied are in the archive all the same.
func TestPurgedMeanwhile(t *testing.T) {
	dir := member(t, "m-healthy-3.6")
	whole := evidencetest.Copy(t, dir)
	b := &busy{after: func(int) {
		for _, n := range append(glob(t, filepath.Join(dir, "member/wal/*.wal")),
			glob(t, filepath.Join(dir, "member/snap/*.snap"))...) {
			if err := os.Remove(n); err != nil {
				t.Error(err)
			}
		}
	}}
	_, out, err := collected(t, dir, b, Options{})
	if err != nil {
		t.Fatal(err)
	}
	same(t, whole, out)
}

// The log ends before the first record of a raft snapshot that is newer than the database, also where the record of an
// earlier snapshot follows it, as that of a member's own snapshot in the background may follow a received one.
func TestEndsBeforeEveryNewerSnapshot(t *testing.T) {
	h := clustertest.NewHand(t, t.TempDir(), "node1", 0xa1, 0xc1)
	h.Found(false, 0xa1)
	h.Request(2, 2, nil)
	for index := uint64(3); index <= 10; index++ {
		h.Put(2, index, clustertest.RequestID(0xa1, 1000, index), "k", "v", index <= 5)
	}
	h.State(2, 0xa1, 10)
	h.Snapshot(2, 9, 0xa1)
	h.Snapshot(2, 7, 0xa1)
	dir, out := h.Close(5, 2), filepath.Join(t.TempDir(), "n.tar.zst")
	m, err := Run(context.Background(), Options{DataDir: dir, Out: out})
	if err != nil {
		t.Fatal(err)
	}
	if len(m.Notes) == 0 || !strings.Contains(m.Notes[0], "the raft snapshot at 9 after it is newer than the database") ||
		len(m.LeftOut) != 2 || m.LastIndex != 10 {
		t.Errorf("%+v", m)
	}
	if got := verdict(t, out); got == "member-lost-data" {
		t.Errorf("the copy is %s", got)
	}
}

// A .snap file that is newer than the database is left out and named; one that the database contains is in the archive.
func TestNewerSnapIsLeftOut(t *testing.T) {
	dir := member(t, "m-healthy-3.6")
	old := glob(t, filepath.Join(dir, "member/snap/*.snap"))
	name := filepath.Join(filepath.Dir(old[0]), "0000000000000002-00000000000fffff.snap")
	b := &busy{after: func(int) {
		content, err := os.ReadFile(old[0])
		if err = errors.Join(err, os.WriteFile(name, content, 0o600)); err != nil {
			t.Error(err)
		}
	}}
	m, out, err := collected(t, dir, b, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if len(m.LeftOut) != 1 || m.LeftOut[0].File != filepath.Base(name) || !strings.Contains(m.LeftOut[0].Why, "newer") {
		t.Errorf("%+v", m.LeftOut)
	}
	if err := os.Remove(name); err != nil {
		t.Fatal(err)
	}
	same(t, dir, out)
}

// A log that does not reach to the database, or lacks a segment, is not taken: the copy is made again, and given up
// after bounded tries.
func TestPartsOfDifferentMoments(t *testing.T) {
	dir := member(t, "m-healthy-3.6")
	wal := glob(t, filepath.Join(dir, "member/wal/*.wal"))
	last := wal[len(wal)-1]
	whole, err := os.ReadFile(last)
	if err != nil {
		t.Fatal(err)
	}
	l, err := dumplog.Open(filepath.Dir(last))
	if err != nil {
		t.Fatal(err)
	}
	var half int64
	n := 0
	for r, err := range l.Records(context.Background()) {
		if n++; err == nil && n == 12 {
			half = r.Offset
		}
	}
	cut := make([]byte, len(whole))
	copy(cut, whole[:half])
	put := func(b []byte) {
		if err := os.WriteFile(last, b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	put(cut)
	_, _, err = collected(t, dir, &busy{}, Options{LogWait: time.Millisecond, Attempts: 2})
	var u *UnprovenError
	if !errors.As(err, &u) || u.Attempts != 2 {
		t.Fatalf("%v", err)
	}
	b := &busy{before: func(n int) {
		if n == 2 {
			put(whole)
		}
	}}
	m, _, err := collected(t, dir, b, Options{LogWait: time.Millisecond})
	if err != nil || m.Attempts != 2 {
		t.Errorf("%+v, %v", m, err)
	}
	put(cut)
	b = &busy{after: func(int) { put(whole) }} // the server writes it a moment later
	if m, _, err = collected(t, dir, b, Options{}); err != nil || m.Attempts != 1 {
		t.Errorf("%+v, %v", m, err)
	}
}

// The member that answers must be the one whose data dir is copied.
func TestOtherMember(t *testing.T) {
	log := &dumplog.Summary{Metadata: &dumplog.Metadata{MemberID: 7, ClusterID: 8}}
	p := &parts{member: 9, cluster: 8, log: log}
	var r *refusal.Error
	if _, _, err := p.prove(); !errors.As(err, &r) {
		t.Error(err)
	}
	p.member = 7
	p.log.Terms = []dumplog.TermRange{{Term: 2, First: 1, Last: 10}}
	p.log.LastIndex, p.index, p.term = 10, 10, 2
	if _, _, err := p.prove(); err != nil {
		t.Error(err)
	}
	p.term = 3
	var u *mismatchError
	if _, _, err := p.prove(); !errors.As(err, &u) {
		t.Errorf("other term: %v", err)
	}
	p.term = 2
	p.log.Segments = []dumplog.Segment{{Seq: 3}, {Seq: 5}}
	if _, _, err := p.prove(); !errors.As(err, &u) {
		t.Errorf("missing segment: %v", err)
	}
	p.log.Segments = nil
	p.log.Terms = []dumplog.TermRange{{Term: 2, First: 12, Last: 20}}
	if _, _, err := p.prove(); !errors.As(err, &u) {
		t.Errorf("log begins above: %v", err)
	}
}

func TestRefusals(t *testing.T) {
	dir := member(t, "m-healthy-3.6")
	taken := filepath.Join(t.TempDir(), "taken")
	if err := os.WriteFile(taken, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(dir, link); err != nil {
		t.Fatal(err)
	}
	for what, o := range map[string]Options{
		"inside":         {DataDir: dir, Out: filepath.Join(dir, "member", "x.tar.zst")},
		"inside by link": {DataDir: dir, Out: filepath.Join(link, "x.tar.zst")},
		"there already":  {DataDir: dir, Out: taken},
		"name":           {DataDir: dir, Name: "../x", Out: taken + "2"},
	} {
		var r *refusal.Error
		if _, err := Run(context.Background(), o); !errors.As(err, &r) {
			t.Errorf("%s: %v", what, err)
		}
	}
	if b, err := os.ReadFile(taken); err != nil || len(b) != 0 {
		t.Errorf("%q, %v", b, err)
	}
}

// The rate is kept.
func TestRate(t *testing.T) {
	p := &pace{ctx: context.Background(), rate: 1 << 20}
	start := time.Now()
	if _, err := io.Copy(io.Discard, p.reader("x", 300<<10, bytes.NewReader(make([]byte, 300<<10)))); err != nil {
		t.Fatal(err)
	}
	if d := time.Since(start); d < 250*time.Millisecond {
		t.Errorf("300 KiB at 1 MiB/s took %v", d)
	}
	ctx, cancel := context.WithCancel(context.Background())
	p = &pace{ctx: ctx, rate: 1}
	cancel()
	if _, err := io.Copy(io.Discard, p.reader("x", 1, strings.NewReader("x"))); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}
