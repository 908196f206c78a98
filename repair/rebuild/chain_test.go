package rebuild_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"go.etcd.io/bbolt"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/etcd-medic/etcd-medic/compare/backup/chain/chaintest"
	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/compare/evidence/evidencetest"
	"github.com/etcd-medic/etcd-medic/dumpdb"
	"github.com/etcd-medic/etcd-medic/refusal"
	"github.com/etcd-medic/etcd-medic/repair/rebuild"
)

// chainStore writes a chain of a member that was stopped early and of what the others wrote after it.
func chainStore(t *testing.T) (dir, now string, base, top int64, files []string) {
	t.Helper()
	incident := evidencetest.Incident(t, "k-lagging-node")
	old := filepath.Join(incident, "node3", "member", "snap", "db")
	now = filepath.Join(incident, "node1", "member", "snap", "db")
	base, top = currentRev(t, old), currentRev(t, now)
	c := &chaintest.Chain{TB: t, Dir: t.TempDir(), Suffix: ".gz"}
	files = append(files, c.Full(old, base-2))
	first, second := chaintest.Split(chaintest.Events(t, now, base-1, top), base+20)
	files = append(files, c.Delta(first), c.Delta(second))
	return c.Dir, now, base, top, files
}

func currentRev(t *testing.T, path string) int64 {
	t.Helper()
	db, err := dumpdb.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = db.Close() }()
	rev, err := db.CurrentRev()
	if err != nil {
		t.Fatal(err)
	}
	return rev
}

func hashAt(t *testing.T, path string, rev int64) uint32 {
	t.Helper()
	db, err := dumpdb.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = db.Close() }()
	h, err := db.HashKV(t.Context(), rev)
	if err != nil {
		t.Fatal(err)
	}
	return h.Hash
}

func rebuildChain(t *testing.T, dir, to string) (*rebuild.Result, string, error) {
	t.Helper()
	target, err := rebuild.ParseTarget(to)
	if err != nil {
		t.Fatal(err)
	}
	base := evidence.Spec{Where: dir}
	out := filepath.Join(t.TempDir(), "out.db")
	chains := rebuild.ChainsAt(base)
	if len(chains) == 0 {
		t.Fatal("no chain found")
	}
	evidencetest.Unchanged(t, dir)
	r, err := rebuild.RunChain(t.Context(), rebuild.Options{Base: base, To: target, Out: out}, chains)
	if _, serr := os.Stat(out); (serr == nil) != (err == nil) {
		t.Errorf("%v, and the output: %v", err, serr)
	}
	return r, out, err
}

// TestChainGivesWhatTheMembersHold: at every kind of target the result has the hash that a member has at that revision.
func TestChainGivesWhatTheMembersHold(t *testing.T) {
	dir, now, base, top, files := chainStore(t)
	events := chaintest.Events(t, now, base+1, top)
	last := events[len(events)-1].Kv
	// the events of the first delta were received then, those of the second a second later
	second := time.Unix(1_700_000_001, 0).UTC()
	for to, want := range map[string]int64{
		"last": top, "revision=" + itoa(base): base, "revision=" + itoa(base+7): base + 7, "revision=" + itoa(top): top,
		"before=" + string(last.Key): last.ModRevision - 1, "time=" + second.Format(time.RFC3339): base + 20,
	} {
		r, out, err := rebuildChain(t, dir, to)
		if err != nil {
			t.Errorf("%s: %v", to, err)
			continue
		}
		if got := currentRev(t, out); got != want || r.To.Revision != want || r.HashKV != hashAt(t, now, want) ||
			hashAt(t, out, want) != r.HashKV {
			t.Errorf("%s: revision %d, want %d: %+v", to, got, want, r)
		}
	}
	if chains := rebuild.ChainsAt(evidence.Spec{Where: files[0]}); len(chains) != 1 || len(chains[0].Deltas) != 2 {
		t.Errorf("by its full snapshot: %+v", chains)
	}
	if chains := rebuild.ChainsAt(evidence.Spec{Where: now}); chains != nil {
		t.Errorf("a database is a chain: %+v", chains)
	}
}

func itoa(n int64) string { return rebuild.Target{Revision: n}.String()[len("revision="):] }

// TestBrokenChainIsRefusedBeyondItsBreak: nothing is made of what does not apply; up to the break it is.
func TestBrokenChainIsRefusedBeyondItsBreak(t *testing.T) {
	dir, now, base, top, files := chainStore(t)
	b, err := os.ReadFile(files[2])
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(files[2], b[:len(b)/2], 0o600); err != nil {
		t.Fatal(err)
	}
	var refused *refusal.Error
	for _, to := range []string{"last", "revision=" + itoa(top), "revision=" + itoa(base+21),
		"revision=" + itoa(base-1), "time=2030-01-01T00:00:00Z", "time=2001-01-01T00:00:00Z",
		"before=/no/such/key", "index=5"} {
		if _, _, err := rebuildChain(t, dir, to); !errors.As(err, &refused) {
			t.Errorf("%s: %v", to, err)
		}
	}
	r, out, err := rebuildChain(t, dir, "revision="+itoa(base+20))
	if err != nil || hashAt(t, out, base+20) != hashAt(t, now, base+20) {
		t.Fatalf("%+v, %v", r, err)
	}
	if !strings.Contains(strings.Join(r.Notes, "\n"), "is damaged") {
		t.Errorf("%q", r.Notes)
	}
}

// TestChainAgainst: the keys of the result are held against a member, and one that holds others contradicts it.
func TestChainAgainst(t *testing.T) {
	dir, now, _, top, _ := chainStore(t)
	run := func(against string) *rebuild.Result {
		t.Helper()
		r, err := rebuild.RunChain(t.Context(),
			rebuild.Options{Base: evidence.Spec{Where: dir}, To: rebuild.Target{Last: true},
				Out:     filepath.Join(t.TempDir(), "out.db"),
				Against: []evidence.Spec{{Name: "other", Where: against}}}, rebuild.ChainsAt(evidence.Spec{Where: dir}))
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	if r := run(now); r.Differs() || !r.Equal() || r.Verified[0].Revision != top {
		t.Errorf("against the member that wrote it: %+v", r.Verified)
	}
	foreign := filepath.Join(evidencetest.Incident(t, "m-healthy-3.5"), "node1", "member", "snap", "db")
	if r := run(foreign); !r.Differs() {
		t.Errorf("against another cluster: %+v", r.Verified)
	}
}

// TestChainWithLogs: entries that lead on from the full snapshot bring all buckets, and an index as target.
func TestChainWithLogs(t *testing.T) {
	dir, now, base, top, _ := chainStore(t)
	log := evidence.Spec{Name: "node1", Where: filepath.Join(evidencetest.Incident(t, "k-lagging-node"), "node1")}
	for to, want := range map[string]int64{"last": top, "revision=" + itoa(base+7): base + 7} {
		target, err := rebuild.ParseTarget(to)
		if err != nil {
			t.Fatal(err)
		}
		out := filepath.Join(t.TempDir(), "out.db")
		r, err := rebuild.RunChain(t.Context(),
			rebuild.Options{Base: evidence.Spec{Where: dir}, Logs: []evidence.Spec{log}, To: target, Out: out},
			rebuild.ChainsAt(evidence.Spec{Where: dir}))
		if err != nil {
			t.Fatal(err)
		}
		if r.To.Revision != want || hashAt(t, out, want) != hashAt(t, now, want) || r.Differs() ||
			r.To.Index == r.From.Index {
			t.Errorf("%s: %+v", to, r)
		}
	}
	o := rebuild.Options{Base: evidence.Spec{Where: dir}, Logs: []evidence.Spec{log},
		To: rebuild.Target{Revision: base - 3}, Out: filepath.Join(t.TempDir(), "out.db")}
	if _, err := rebuild.RunChain(t.Context(), o, rebuild.ChainsAt(o.Base)); err == nil ||
		!strings.Contains(err.Error(), "no full snapshot here is as old as") {
		t.Errorf("a revision before the full snapshot: %v", err)
	}
	purged := evidence.Spec{Name: "m1", Where: filepath.Join(evidencetest.Incident(t, "t-purged-lagging"), "m1")}
	_, err := rebuild.RunChain(t.Context(), rebuild.Options{Base: evidence.Spec{Where: dir},
		Logs: []evidence.Spec{purged}, To: rebuild.Target{Last: true}, Out: filepath.Join(t.TempDir(), "out.db")},
		rebuild.ChainsAt(evidence.Spec{Where: dir}))
	var refused *refusal.Error
	if !errors.As(err, &refused) {
		t.Errorf("a log of another cluster: %v, want a refusal", err)
	}
}

// leasedChain is a chain whose full snapshot has lease 5, and whose changes name it and lease 6 afterwards.
func leasedChain(t *testing.T) (files []string, events []*clientv3.Event) {
	t.Helper()
	incident := evidencetest.Incident(t, "k-lagging-node")
	old := evidencetest.Copy(t, filepath.Join(incident, "node3", "member", "snap", "db"))
	editDB(t, old, func(tx *bbolt.Tx) error {
		return tx.Bucket([]byte("lease")).Put([]byte{0, 0, 0, 0, 0, 0, 0, 5}, []byte{8, 5, 16, 100})
	})
	base := currentRev(t, old)
	events = chaintest.Events(t, filepath.Join(incident, "node1", "member", "snap", "db"), base+1, base+3)
	if len(events) != 3 {
		t.Fatalf("%d events", len(events))
	}
	events[0].Kv.Lease, events[1].Kv.Lease = 5, 6
	c := &chaintest.Chain{TB: t, Dir: t.TempDir()}
	return []string{c.Full(old, base), c.Delta(events)}, events
}

// TestChainLeases: a key keeps a lease that the full snapshot has, and loses one that was granted later, with a note.
func TestChainLeases(t *testing.T) {
	files, events := leasedChain(t)
	r, out, err := rebuildChain(t, filepath.Dir(files[0]), "last")
	if err != nil {
		t.Fatal(err)
	}
	leases := map[string]int64{}
	for _, k := range held(t, out, false) {
		leases[k.Key] = k.Lease
	}
	if leases[string(events[0].Kv.Key)] != 5 || leases[string(events[1].Kv.Key)] != 0 {
		t.Errorf("%v", leases)
	}
	if !strings.HasPrefix(strings.Join(r.Notes, "\n"), "1 records name a lease") || r.Records != 3 || r.Entries != 3 ||
		r.Applied != 3 || r.From.Index == 0 || r.To.Revision != r.From.Revision+3 || r.To.Index != r.From.Index ||
		r.Keys != int64(len(leases)) {
		t.Errorf("%+v", r)
	}
}

// TestBadFullSnapshot: nothing is built on a full snapshot that cannot be read or has a wrong sum, unless asked to.
func TestBadFullSnapshot(t *testing.T) {
	files, _ := leasedChain(t)
	whole, err := os.ReadFile(files[0])
	if err != nil {
		t.Fatal(err)
	}
	base := evidence.Spec{Where: files[0]}
	o := rebuild.Options{Base: base, To: rebuild.Target{Last: true}}
	build := func(ctx context.Context) (*rebuild.Result, error) {
		o.Out = filepath.Join(t.TempDir(), "out.db")
		r, err := rebuild.RunChain(ctx, o, rebuild.ChainsAt(base))
		if left, _ := filepath.Glob(o.Out + "*"); (len(left) == 1) != (err == nil) {
			t.Errorf("%v left %v", err, left)
		}
		return r, err
	}
	for want, change := range map[string]func([]byte) []byte{
		"does not open as a database": func([]byte) []byte { return []byte("no database") },
		"is damaged in": func(b []byte) []byte {
			clear(b[2*4096:])
			return b
		},
		"the sha256 of": func(b []byte) []byte {
			b[len(b)-1] ^= 1
			return b
		},
	} {
		if err := os.WriteFile(files[0], change(slices.Clone(whole)), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := build(t.Context()); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
	wrong := slices.Clone(whole)
	wrong[len(wrong)-1] ^= 1
	if err := os.WriteFile(files[0], wrong, 0o600); err != nil {
		t.Fatal(err)
	}
	o.SkipHashCheck = true
	if r, err := build(t.Context()); err != nil || !strings.Contains(r.Notes[0], "does not hold") {
		t.Errorf("%+v, %v", r, err)
	}
	if err := os.WriteFile(files[0], whole, 0o600); err != nil {
		t.Fatal(err)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := build(ended); !errors.Is(err, context.Canceled) {
		t.Errorf("after the end: %v", err)
	}
	o.Against = []evidence.Spec{{Where: filepath.Join(t.TempDir(), "none")}}
	if _, err := build(t.Context()); err == nil {
		t.Error("a member to compare with that is not there")
	}
	o.Against, o.Skip = nil, []uint64{5}
	if _, err := build(t.Context()); err == nil || !strings.Contains(err.Error(), "takes no --skip") {
		t.Errorf("an entry to skip: %v", err)
	}
	o.Skip, o.Out = nil, filepath.Join(t.TempDir(), "out.db")
	if err := os.WriteFile(o.Out, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := rebuild.RunChain(t.Context(), o, rebuild.ChainsAt(base)); err == nil {
		t.Error("a file that exists is overwritten")
	}
	packed := filepath.Join(t.TempDir(), filepath.Base(files[0])+".gz")
	if err := os.WriteFile(packed, whole, 0o600); err != nil {
		t.Fatal(err)
	}
	base.Where = packed
	if _, err := build(t.Context()); err == nil || !strings.Contains(err.Error(), filepath.Base(packed)+": ") {
		t.Errorf("a full snapshot that does not unpack: %v", err)
	}
}

// TestNewestFullSnapshot: of several chains, the one begins whose full snapshot is the last before the target.
func TestNewestFullSnapshot(t *testing.T) {
	incident := evidencetest.Incident(t, "k-lagging-node")
	old := filepath.Join(incident, "node3", "member", "snap", "db")
	now := filepath.Join(incident, "node1", "member", "snap", "db")
	base, top := currentRev(t, old), currentRev(t, now)
	c := &chaintest.Chain{TB: t, Dir: t.TempDir()}
	first, _ := c.Full(old, base), c.Delta(chaintest.Events(t, now, base+1, top))
	second := c.Full(now, top)
	when := func(file string) time.Time { // every file is a second newer than the one before it
		var unix int64
		if _, err := fmt.Sscan(file[strings.LastIndex(file, "-")+1:], &unix); err != nil {
			t.Fatal(err)
		}
		return time.Unix(unix, 0).UTC()
	}
	log := []evidence.Spec{{Name: "node1", Where: filepath.Join(incident, "node1")}}
	for to, want := range map[string]string{"last": second, "revision=" + itoa(top): second,
		"revision=" + itoa(top-1): first, "revision=" + itoa(base): first, "revision=" + itoa(base-1): "",
		"time=" + when(first).Add(-time.Second).Format(time.RFC3339): ""} {
		r, _, err := rebuildChain(t, c.Dir, to)
		if got := named(r); got != filepath.Base(want) && want != "" || (err == nil) != (want != "") {
			t.Errorf("%s: %s, %v, want %s", to, got, err, want)
		}
		target, _ := rebuild.ParseTarget(to) // as above
		o := rebuild.Options{Base: evidence.Spec{Where: c.Dir}, Logs: log, To: target,
			Out: filepath.Join(t.TempDir(), "out.db")}
		r, err = rebuild.RunChain(t.Context(), o, rebuild.ChainsAt(o.Base))
		if want == "" {
			if err == nil || !strings.Contains(err.Error(), "no full snapshot here is as old") {
				t.Errorf("%s with the log: %v", to, err)
			}
			continue
		}
		if err != nil || !strings.Contains(strings.Join(r.Notes, "\n"), filepath.Base(want)) {
			t.Errorf("%s with the log: %+v, %v, want %s", to, r, err, want)
		}
	}
}

func named(r *rebuild.Result) string {
	if r == nil {
		return ""
	}
	return filepath.Base(r.Base)
}
