package rebuild_test

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.etcd.io/bbolt"

	"github.com/etcd-medic/etcd-medic/compare/backup/chain/chaintest"
	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/compare/evidence/evidencetest"
	"github.com/etcd-medic/etcd-medic/refusal"
	"github.com/etcd-medic/etcd-medic/repair/rebuild"
)

// TestChainsRefusedWithLogs: where no full snapshot of several fits the logs, the refusal is that of the newest one.
// Any other error ends the search at once.
func TestChainsRefusedWithLogs(t *testing.T) {
	incident := evidencetest.Incident(t, "k-lagging-node")
	old, now := filepath.Join(incident, "node3", "member", "snap", "db"), filepath.Join(incident, "node1", "member",
		"snap", "db")
	c := &chaintest.Chain{TB: t, Dir: t.TempDir()}
	c.Full(old, currentRev(t, old))
	newest := c.Full(now, currentRev(t, now))
	whole, err := os.ReadFile(newest)
	if err != nil {
		t.Fatal(err)
	}
	foreign := []evidence.Spec{{Name: "m1", Where: filepath.Join(evidencetest.Incident(t, "t-purged-lagging"), "m1")}}
	none := []evidence.Spec{{Where: filepath.Join(t.TempDir(), "none")}}
	wrong := bytes.Clone(whole)
	wrong[len(wrong)-1] ^= 1
	base := evidence.Spec{Where: c.Dir}
	for name, x := range map[string]struct {
		newest  []byte
		logs    []evidence.Spec
		refused bool
		want    string
	}{
		"a wrong sum of the newest":   {wrong, foreign, true, "sha256 trailer"},
		"logs of another cluster":     {whole, foreign, true, "the base names other members"},
		"logs that are not there":     {whole, none, false, "nothing at this path"},
		"a newest that does not open": {[]byte("no database"), foreign, false, filepath.Base(newest)},
	} {
		if err := os.WriteFile(newest, x.newest, 0o600); err != nil {
			t.Fatal(err)
		}
		o := rebuild.Options{Base: base, Logs: x.logs, To: rebuild.Target{Last: true},
			Out: filepath.Join(t.TempDir(), "out.db")}
		r, err := rebuild.RunChain(t.Context(), o, rebuild.ChainsAt(base))
		var refused *refusal.Error
		if r != nil || err == nil || errors.As(err, &refused) != x.refused || !strings.Contains(err.Error(), x.want) {
			t.Errorf("%s: %+v, %v, want %q", name, r, err, x.want)
		}
	}
}

// TestFullSnapshotDoesNotUnpack: nothing is built on logs and a full snapshot that does not unpack.
func TestFullSnapshotDoesNotUnpack(t *testing.T) {
	dir, _, _, _, files := chainStore(t)
	if err := os.WriteFile(files[0], []byte("no gzip"), 0o600); err != nil {
		t.Fatal(err)
	}
	o := rebuild.Options{Base: evidence.Spec{Where: dir}, To: rebuild.Target{Last: true},
		Out:  filepath.Join(t.TempDir(), "out.db"),
		Logs: []evidence.Spec{{Where: filepath.Join(evidencetest.Incident(t, "k-lagging-node"), "node1")}}}
	if r, err := rebuild.RunChain(t.Context(), o, rebuild.ChainsAt(o.Base)); r != nil || err == nil ||
		!strings.HasPrefix(err.Error(), filepath.Base(files[0])+": ") {
		t.Errorf("%+v, %v", r, err)
	}
}

// TestChainAgainstOthers: every member to compare with has to be read. A log alone shows no keys, so it proves nothing.
func TestChainAgainstOthers(t *testing.T) {
	dir, now, _, _, _ := chainStore(t)
	incident := evidencetest.Incident(t, "k-lagging-node")
	log := evidence.Spec{Name: "log", Where: filepath.Join(incident, "node1", "member", "wal")}
	member, none := evidence.Spec{Name: "member", Where: now}, evidence.Spec{Where: filepath.Join(t.TempDir(), "none")}
	for name, c := range map[string]struct {
		against  []evidence.Spec
		verified int
		fails    bool
	}{
		"a member":                  {[]evidence.Spec{member}, 1, false},
		"a member and a log":        {[]evidence.Spec{log, member}, 1, false},
		"a log":                     {[]evidence.Spec{log}, 0, false},
		"one of two is not there":   {[]evidence.Spec{member, none}, 0, true},
		"the only one is not there": {[]evidence.Spec{none}, 0, true},
	} {
		o := rebuild.Options{Base: evidence.Spec{Where: dir}, To: rebuild.Target{Last: true}, Against: c.against,
			Out: filepath.Join(t.TempDir(), "out.db")}
		r, err := rebuild.RunChain(t.Context(), o, rebuild.ChainsAt(o.Base))
		if (err != nil) != c.fails || err == nil && len(r.Verified) != c.verified {
			t.Errorf("%s: %v, %+v", name, err, r)
			continue
		}
		for i := range c.verified {
			if v := r.Verified[i]; v.Member != "member" || len(v.Buckets) < 2 || !v.Buckets[0].Equal.Certain() ||
				v.Buckets[1].Why != "deltas hold keys only" {
				t.Errorf("%s: %+v", name, v)
			}
		}
	}
}

// TestLeasesOfAFullSnapshot: a chain whose leases cannot be read is refused, as its keys would lose theirs.
func TestLeasesOfAFullSnapshot(t *testing.T) {
	incident := evidencetest.Incident(t, "k-lagging-node")
	old := evidencetest.Copy(t, filepath.Join(incident, "node3", "member", "snap", "db"))
	editDB(t, old, func(tx *bbolt.Tx) error {
		return tx.Bucket([]byte("lease")).Put([]byte{0, 0, 0, 0, 0, 0, 0, 5}, []byte{0xff})
	})
	c := &chaintest.Chain{TB: t, Dir: t.TempDir()}
	c.Full(old, currentRev(t, old))
	var refused *refusal.Error
	_, _, err := rebuildChain(t, c.Dir, "last")
	if !errors.As(err, &refused) || !strings.Contains(err.Error(), "the leases of") {
		t.Errorf("%v", err)
	}
}

// TestSourcesThatDoNotOpen: nothing is rebuilt if one of the sources cannot be read, from a base without a database, or
// into a place that cannot be written to.
func TestSourcesThatDoNotOpen(t *testing.T) {
	dir := lagging(t, 1, "3.5.0")[0]
	wal := evidence.Spec{Where: filepath.Join(dir, "member", "wal")}
	none := evidence.Spec{Where: filepath.Join(t.TempDir(), "none")}
	noise := evidencetest.Copy(t, dir)
	if err := os.WriteFile(filepath.Join(noise, "member", "snap", "db"), bytes.Repeat([]byte("noise"), 4000),
		0o600); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for want, o := range map[string]rebuild.Options{
		"nothing at this path": {Logs: []evidence.Spec{{Where: dir}, none}},
		"found no db":          {Base: wal, Logs: []evidence.Spec{{Where: dir}}},
		"no db that opens":     {Base: evidence.Spec{Where: noise}, Logs: []evidence.Spec{{Where: dir}}},
		"a file, not a folder": {Logs: []evidence.Spec{{Where: dir}}, Out: filepath.Join(file, "out.db")},
		"inside":               {Logs: []evidence.Spec{{Where: dir}}, Out: filepath.Join(dir, "out.db")},
	} {
		o.To = rebuild.Target{Last: true}
		if _, err := run(t, o); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
	up, err := rebuild.CatchUp(t.Context(), rebuild.CatchUpOptions{Source: evidence.Spec{Where: noise}})
	if err != nil || !up.FromStart || up.Executed != 0 {
		t.Errorf("a database that does not open, next to its log: %+v, %v", up, err)
	}
	for name, o := range map[string]rebuild.CatchUpOptions{"the source": {Source: none},
		"a log": {Source: evidence.Spec{Where: dir}, Logs: []evidence.Spec{none}}} {
		if up, err := rebuild.CatchUp(t.Context(), o); up != nil || err == nil {
			t.Errorf("%s is not there: %+v, %v", name, up, err)
		}
	}
}
