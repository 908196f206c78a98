package rebuild_test

import (
	"encoding/binary"
	"os"
	"path/filepath"
	"testing"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"

	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/compare/evidence/clustertest"
	"github.com/etcd-medic/etcd-medic/release"
	"github.com/etcd-medic/etcd-medic/repair/rebuild"
)

// expired writes a data dir of 3.5 whose log has root revoke a lease with an old auth revision, between puts of k (with
// the lease) and l. The database is that of a server that refused the revoke, or of one that executed it.
func expired(t *testing.T, refused bool) string { return revoked(t, refused, false) }

// revoked is expired; again has root revoke the lease a second time in the same way, and a third time with the new auth
// revision, which every server executes where the lease is still there.
func revoked(t *testing.T, refused, again bool) string {
	t.Helper()
	h := clustertest.NewHand(t, t.TempDir(), "node1", 0xa1, 0xc1)
	h.Found(false, 0xa1)
	h.Request(2, 2, nil)
	index := h.RootRevokes(3, 4)
	do := func(authRevision uint64, r *etcdserverpb.InternalRaftRequest) {
		index++
		h.RootRequest(index, authRevision, r)
	}
	if again {
		do(4, clustertest.RevokeRequest(7))
		do(5, clustertest.RevokeRequest(7))
	}
	do(5, clustertest.PutRequest("l", "2", 0))
	h.State(2, 0xa1, index)
	row := func(rev int64, mark string, kv mvccpb.KeyValue) {
		b, err := kv.Marshal()
		if err != nil {
			t.Fatal(err)
		}
		at := binary.BigEndian.AppendUint64(append(binary.BigEndian.AppendUint64(nil, uint64(rev)), '_'), 0)
		h.Row("key", string(at)+mark, string(b))
	}
	rev := int64(2)
	row(rev, "", mvccpb.KeyValue{Key: []byte("k"), Value: []byte("1"), CreateRevision: 2, ModRevision: 2, Version: 1,
		Lease: 7})
	if rev++; !refused {
		row(rev, "t", mvccpb.KeyValue{Key: []byte("k")})
		rev++
	}
	row(rev, "", mvccpb.KeyValue{Key: []byte("l"), Value: []byte("2"), CreateRevision: rev, ModRevision: rev,
		Version: 1})
	return h.Close(index, 2)
}

// TestUndecidedByRelease: whether root may revoke with an old auth revision depends on the patch release. The member's
// database shows it; without one the entry is reported as not decided, and a release that is named decides.
func TestUndecidedByRelease(t *testing.T) {
	for name, c := range map[string]struct {
		refused, noDB bool
		version       release.Version
		revision      int64
		doubtful      int64
	}{
		"executed":         {revision: 4},
		"refused":          {refused: true, revision: 3},
		"log alone":        {noDB: true, revision: 3, doubtful: 1},
		"log of 3.5.9":     {noDB: true, version: release.Exact(5, 9), revision: 3},
		"log of 3.5.10":    {noDB: true, version: release.Exact(5, 10), revision: 4},
		"log of any 3.6":   {noDB: true, version: release.AnyOf(6), revision: 4},
		"against the flag": {refused: true, version: release.Exact(5, 10), revision: 4},
	} {
		t.Run(name, func(t *testing.T) {
			dir := expired(t, c.refused)
			if c.noDB {
				if err := os.Remove(filepath.Join(dir, "member", "snap", "db")); err != nil {
					t.Fatal(err)
				}
				dir = filepath.Join(dir, "member", "wal")
			}
			version := c.version
			if c.noDB && !version.Known() {
				version = release.AnyOf(5) // a log alone does not show its version
			}
			out := filepath.Join(t.TempDir(), "out.db")
			res, err := run(t, rebuild.Options{Logs: []evidence.Spec{{Where: dir}}, To: rebuild.Target{Last: true},
				Out: out, Version: version})
			if err != nil {
				t.Fatal(err)
			}
			if res.To.Revision != c.revision || res.DoubtfulCount != c.doubtful {
				t.Errorf("revision %d with %d undecided (%+v), want %d with %d", res.To.Revision, res.DoubtfulCount,
					res.Doubtful, c.revision, c.doubtful)
			}
			want := 2
			if c.revision == 4 {
				want = 1
			}
			if got := held(t, out, false); len(got) != want {
				t.Errorf("keys %v, want %d", got, want)
			}
		})
	}
}

// TestRefusedAndMadeAgain: a revoke that was refused and made again leaves the same records as one that was executed at
// once. Between the two nothing at hand tells which it was, however equal the content; from the later one on it makes
// no difference.
func TestRefusedAndMadeAgain(t *testing.T) {
	dir := revoked(t, false, true)
	for _, c := range []struct {
		index               uint64
		version             release.Version
		revision, unsettled int64 // revision 0: either
	}{
		{index: 9, revision: 2}, {index: 10, unsettled: 1}, {index: 11, unsettled: 1}, {index: 12, revision: 3},
		{index: 13, revision: 4},
		{index: 10, version: release.Exact(5, 9), revision: 2}, {index: 11, version: release.Exact(5, 9), revision: 2},
		{index: 12, version: release.Exact(5, 9), revision: 3},
		{index: 10, version: release.Exact(5, 10), revision: 3},
		{index: 12, version: release.Exact(5, 10), revision: 3},
	} {
		res, err := run(t, rebuild.Options{Logs: []evidence.Spec{{Where: dir}}, To: rebuild.Target{Index: c.index},
			Version: c.version})
		if err != nil {
			t.Fatal(err)
		}
		if res.Unsettled < c.unsettled || c.unsettled == 0 && (res.Unsettled > 0 || res.DoubtfulCount > 0) ||
			c.revision > 0 && res.To.Revision != c.revision {
			t.Errorf("%+v: revision %d, %d unsettled, %d doubtful: %+v", c, res.To.Revision, res.Unsettled,
				res.DoubtfulCount, res.Doubtful)
		}
	}
}
