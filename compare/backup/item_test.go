package backup_test

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/klauspost/compress/gzip"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/etcd-medic/etcd-medic/compare"
	"github.com/etcd-medic/etcd-medic/compare/backup"
	"github.com/etcd-medic/etcd-medic/compare/backup/chain"
	"github.com/etcd-medic/etcd-medic/compare/backup/chain/chaintest"
	"github.com/etcd-medic/etcd-medic/compare/backup/locate"
	"github.com/etcd-medic/etcd-medic/compare/check"
	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/internal/ctxtest"
)

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// located finds the one backup at a path.
func located(t *testing.T, where string, stdin []byte) *locate.Item {
	t.Helper()
	found, err := locate.Find(t.Context(), []evidence.Spec{{Where: where}},
		locate.Options{Stdin: bytes.NewReader(stdin), Scratch: t.TempDir()})
	must(t, err)
	t.Cleanup(func() { must(t, found.Close()) })
	if len(found.Items) != 1 {
		t.Fatalf("%d backups in %s", len(found.Items), where)
	}
	return found.Items[0]
}

func item(t *testing.T, it *locate.Item, o backup.Options) *compare.Report {
	t.Helper()
	r, err := backup.Item(t.Context(), it, t.TempDir(), o)
	must(t, err)
	return r
}

func zip(t *testing.T, b []byte) []byte {
	t.Helper()
	var out bytes.Buffer
	w := gzip.NewWriter(&out)
	_, err := w.Write(b)
	must(t, errors.Join(err, w.Close()))
	return out.Bytes()
}

func content(t *testing.T, path string) []byte {
	t.Helper()
	b, err := os.ReadFile(path)
	must(t, err)
	return b
}

// written writes a file with the name in a folder of its own.
func written(t *testing.T, name string, b []byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	must(t, os.WriteFile(path, b, 0o600))
	return path
}

// TestItem verifies what was located: plain, packed, cut in its packing, piped in, missing.
func TestItem(t *testing.T) {
	b := content(t, good(t))
	packed := zip(t, b)
	for _, c := range []struct {
		name, path string
		stdin      []byte
		class      string
		// where is what commands in the report name, "" where no command can.
		where string
		says  string
	}{
		{name: "plain", path: written(t, "a.db", b), class: "backup-good", where: "a.db"},
		{name: "packed", path: written(t, "a.db.gz", packed), class: "backup-good"},
		{name: "packing cut", path: written(t, "a.db.gz", packed[:len(packed)-4000]), class: "backup-damaged"},
		{name: "packing that lost its checksum", path: written(t, "a.db.gz", packed[:len(packed)-8]),
			class: "backup-damaged", says: "the packed file is damaged"},
		{name: "piped in", path: "-", stdin: b, class: "backup-good", where: "-"},
		{name: "packed and piped in", path: "-", stdin: packed, class: "backup-good", where: "-"},
		{name: "nothing at the path", path: filepath.Join(t.TempDir(), "none.db"), class: "inconclusive",
			says: "the backup cannot be read"},
		{name: "empty folder", path: t.TempDir(), class: "inconclusive",
			says: "no backup here: there is no file in it"},
		{name: "a plan", path: written(t, "etcd-backup.db", []byte("# etcd-medic repair plan\n")), class: "inconclusive",
			says: "it is a repair plan of etcd-medic"},
		{name: "archive cut", path: written(t, "a.zip", []byte("PK\x03\x04 and nothing more")),
			class: "backup-damaged", says: "the archive is damaged"},
	} {
		t.Run(c.name, func(t *testing.T) {
			it := located(t, c.path, c.stdin)
			r := item(t, it, backup.Options{})
			if string(r.Verdict.Class) != c.class || !strings.Contains(r.Verdict.Summary, c.says) {
				t.Errorf("%s: %s; want %s, %s", r.Verdict.Class, r.Verdict.Summary, c.class, c.says)
			}
			if got := r.Sources[0].Where; got != c.where && filepath.Base(got) != c.where {
				t.Errorf("where %q, want %q", got, c.where)
			}
			if backup.Name(r) != it.Label || len(r.Next) == 0 || !r.InputsUnchanged {
				t.Errorf("name %q, want %q; next %+v; unchanged %v", backup.Name(r), it.Label, r.Next,
					r.InputsUnchanged)
			}
		})
	}
}

// TestUnreadableArchive: a damaged archive is a finding with evidence, not only a message.
func TestUnreadableArchive(t *testing.T) {
	it := located(t, written(t, "a.zip", []byte("PK\x03\x04 and nothing more")), nil)
	r := item(t, it, backup.Options{})
	if r.Verdict.Health != check.Unhealthy || r.Verdict.FirstBreak == nil || r.Verdict.FirstBreak.Check != check.B02 ||
		len(r.Findings) != 1 || len(r.Findings[0].Evidence) != 1 || r.Findings[0].Members[0] != "a.zip" ||
		!strings.Contains(r.Next[0].Text, "do not rely on this file") {
		t.Errorf("%+v, %+v, %+v", r.Verdict, r.Findings, r.Next)
	}
}

// TestUnusableNames: a report of a backup that was never read names it, and the version that wrote the report.
func TestUnusableNames(t *testing.T) {
	o := backup.Options{Options: compare.Options{Version: "1.2.3"}}
	for want, spec := range map[string]evidence.Spec{"daily": {Name: "daily", Where: "/a/b.db"},
		"b.db": {Where: "/a/b.db"}} {
		r := backup.Unusable(spec, errors.New("no permission"), o)
		if backup.Name(r) != want || r.Tool.Version != "1.2.3" || r.Sources[0].Error != "no permission" ||
			r.Verdict.Health != check.HealthUnknown || r.Findings == nil || r.Members == nil || r.Checks == nil {
			t.Errorf("%+v", r)
		}
		if line := backup.LineOf(r).String(); line != want+": inconclusive: the backup cannot be read: no permission" {
			t.Error(line)
		}
	}
	r := backup.Unusable(evidence.Spec{Where: "s3://b/a.db"}, errors.New("403"), o)
	if !strings.Contains(r.Next[0].Text, "credentials") {
		t.Errorf("of object storage: %q", r.Next[0].Text)
	}
	if name := backup.Name(&compare.Report{}); name != "" {
		t.Errorf("of no source: %q", name)
	}
}

// TestItemChanged: a backup that is written to while it is read is not called good.
func TestItemChanged(t *testing.T) {
	path := written(t, "a.db", content(t, good(t)))
	it := located(t, path, nil)
	later := time.Now().Add(time.Hour)
	must(t, os.Chtimes(path, later, later))
	r := item(t, it, backup.Options{})
	if r.InputsUnchanged || r.Verdict.Class != "inconclusive" || outcome(r, "B01") != check.NotChecked ||
		!strings.Contains(r.Verdict.Summary, "changed while it was read") {
		t.Errorf("%+v, unchanged %v", r.Verdict, r.InputsUnchanged)
	}
}

// TestItemEnds: a run that is ended gives no report.
func TestItemEnds(t *testing.T) {
	it := located(t, good(t), nil)
	ctx, stop := context.WithCancel(t.Context())
	stop()
	if r, err := backup.Item(ctx, it, t.TempDir(), backup.Options{}); r != nil || !errors.Is(err, context.Canceled) {
		t.Errorf("%+v, %v", r, err)
	}
}

// deltas writes a full snapshot and deltas after it into a folder, and changes the events of the second one.
func deltas(t *testing.T, change func([]*clientv3.Event) []*clientv3.Event) (dir string, files []string, top int64) {
	t.Helper()
	c := &chaintest.Chain{TB: t, Dir: t.TempDir()}
	old, now := nodeDB(t, "k-lagging-node", "node3"), nodeDB(t, "k-lagging-node", "node1")
	_, a := against(t, old, now)
	top = a.Compared[0].Revision
	base := top - a.Compared[0].RevisionsBehind
	first, second := chaintest.Split(chaintest.Events(t, now, base+1, top), base+20)
	files = []string{c.Full(old, base), c.Delta(first)}
	if change != nil {
		second = change(second)
	}
	return c.Dir, append(files, c.DeltaAs(base+21, top, second)), top
}

// TestChainOfDeltas: a full snapshot is verified with its deltas, and a fault of a delta is damage of the backup.
func TestChainOfDeltas(t *testing.T) {
	for _, c := range []struct {
		name    string
		change  func([]*clientv3.Event) []*clientv3.Event
		spoil   func(t *testing.T, files []string)
		class   string
		outcome check.Outcome
		says    string
	}{
		{name: "sound", class: "backup-good", outcome: check.Holds, says: "2 delta snapshots"},
		{name: "a revision without event", change: func(e []*clientv3.Event) []*clientv3.Event {
			return append(e[:10:10], e[12:]...)
		}, class: "backup-damaged", outcome: check.Violated, says: "have no event"},
		{name: "a delta that cannot be read", spoil: func(t *testing.T, f []string) {
			must(t, os.Remove(f[2]))
			must(t, os.Mkdir(f[2], 0o700))
		}, class: "inconclusive", outcome: check.NotChecked, says: "1700000003 cannot be read"},
		{name: "damaged full snapshot", spoil: func(t *testing.T, f []string) {
			b := content(t, f[0])
			must(t, os.WriteFile(f[0], b[:20_000], 0o600))
		}, class: "backup-damaged", outcome: check.NotChecked, says: "the full snapshot cannot be read in full"},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir, files, top := deltas(t, c.change)
			it := located(t, dir, nil)
			if c.spoil != nil {
				c.spoil(t, files)
			}
			r := item(t, it, backup.Options{})
			if string(r.Verdict.Class) != c.class || outcome(r, "B10") != c.outcome {
				t.Errorf("%s: %s, B10 %s", r.Verdict.Class, r.Verdict.Summary, outcome(r, "B10"))
			}
			if l := layerOf(r, "deltas"); l.Outcome != c.outcome || !strings.Contains(l.Says, c.says) {
				t.Errorf("layer %+v", l)
			}
			got, _ := r.Backup.Chain.(*chain.Report)
			switch c.outcome {
			case check.Holds:
				if got.Revision != top || !strings.Contains(backup.LineOf(r).Content, "2 deltas up to revision") {
					t.Errorf("serves up to %d of %d: %s", got.Revision, top, backup.LineOf(r))
				}
			case check.Violated:
				f := r.Findings[len(r.Findings)-1]
				if f.Check != check.B10 || f.At.Revision == nil || f.At.Revision.Main <= got.Revision ||
					f.Evidence[0].File == "" {
					t.Errorf("%+v", f)
				}
			}
		})
	}
}

// TestVerifyEndsAnywhere: wherever the caller gives up, a backup is not judged: neither by its deltas nor by other
// sources.
func TestVerifyEndsAnywhere(t *testing.T) {
	dir, files, _ := deltas(t, nil)
	it := located(t, dir, nil)
	o := backup.Options{Chain: it.Chain, Against: []evidence.Spec{{Name: "other",
		Where: nodeDB(t, "k-lagging-node", "node1")}, {Name: "same", Where: files[0]}}}
	ctx := ctxtest.EndingAfter(1 << 40)
	whole, err := backup.Verify(ctx, evidence.Spec{Where: files[0]}, o)
	if err != nil || whole.Backup.Chain == nil || !whole.InputsUnchanged {
		t.Fatalf("%v, %+v", err, whole)
	}
	want := whole.Backup.Against.(*backup.Against)
	asked, ended := 1<<40-ctx.Left(), 0
	for n := int64(0); n < asked; n += 1 + asked/20 {
		r, err := backup.Verify(ctxtest.EndingAfter(n), evidence.Spec{Where: files[0]}, o)
		switch {
		case errors.Is(err, context.Canceled) && r == nil:
			ended++
		case err != nil:
			t.Errorf("after %d of %d: %v", n, asked, err)
		case r.Verdict.Summary != whole.Verdict.Summary ||
			cmp.Diff(want.Compared, r.Backup.Against.(*backup.Against).Compared) != "":
			t.Errorf("after %d of %d: a report that is not whole: %s", n, asked, r.Verdict.Summary)
		}
	}
	if ended < 5 {
		t.Errorf("ended %d of %d times", ended, asked)
	}
}
