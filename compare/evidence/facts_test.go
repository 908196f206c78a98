package evidence_test

import (
	"encoding/binary"
	"errors"
	"hash/fnv"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"go.etcd.io/bbolt"
	"go.etcd.io/etcd/api/v3/authpb"
	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/server/v3/lease/leasepb"

	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/compare/evidence/clustertest"
	"github.com/etcd-medic/etcd-medic/compare/evidence/evidencetest"
	"github.com/etcd-medic/etcd-medic/dumpdb"
	"github.com/etcd-medic/etcd-medic/dumplog"
	"github.com/etcd-medic/etcd-medic/release"
)

// message is a protobuf message as a row has it.
func message(t *testing.T, m interface{ Marshal() ([]byte, error) }) string {
	t.Helper()
	b, err := m.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// bigEndian is a number as a row has it.
func bigEndian(n uint64) string { return string(binary.BigEndian.AppendUint64(nil, n)) }

// openDeep opens one source with everything that is read from a database.
func openDeep(t *testing.T, where string) *evidence.Member {
	t.Helper()
	s, err := evidence.Open(t.Context(), []evidence.Spec{{Where: where}}, evidence.Options{Hash: true, Deep: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s.Members[0]
}

// furnished is a data dir with something in every bucket.
func furnished(t *testing.T) *clustertest.Hand {
	t.Helper()
	const a1, a2, b1 = 0xa1, 0xa2, 0xb1
	h := clustertest.NewHand(t, t.TempDir(), "node1", a1, 0xc1)
	h.Found(false, a1, a2)
	h.Conf(2, 3, clustertest.AddLearner(b1, clustertest.RequestID(a1, 1000, 1)))
	h.Put(2, 4, clustertest.RequestID(a1, 1000, 2), "k", "v", true)
	h.Put(2, 5, clustertest.RequestID(a1, 1000, 3), "k", "w", true)
	h.State(2, a1, 5)
	h.Member(a1, false, true)
	h.Member(a2, false, false)
	h.Member(b1, true, false)
	h.Removed(0xd1)
	h.Row("meta", "storageVersion", "3.6.0")
	h.Row("cluster", "clusterVersion", "3.6.0")
	h.Row("cluster", "downgrade", `{"target-version":"3.5.0","enabled":true}`)
	h.Row("auth", "authEnabled", "\x01")
	h.Row("auth", "authRevision", bigEndian(7))
	h.Row("authUsers", "root", message(t, &authpb.User{Name: []byte("root"), Roles: []string{"root", "app"}}))
	h.Row("authUsers", "idle", message(t, &authpb.User{Name: []byte("idle")}))
	h.Row("authRoles", "app", message(t, &authpb.Role{Name: []byte("app"), KeyPermission: []*authpb.Permission{
		{PermType: authpb.READWRITE, Key: []byte("/app/"), RangeEnd: []byte("/app0")}}}))
	h.Row("lease", bigEndian(0x11), message(t, &leasepb.Lease{ID: 0x11, TTL: 60, RemainingTTL: 20}))
	for _, kind := range []etcdserverpb.AlarmType{etcdserverpb.AlarmType_NOSPACE, etcdserverpb.AlarmType_CORRUPT} {
		h.Row("alarm", message(t, &etcdserverpb.AlarmMember{MemberID: a1, Alarm: kind}), "")
	}
	return h
}

// TestFactsOfAMember: every part of a data dir appears in the facts, with its own values.
func TestFactsOfAMember(t *testing.T) {
	f := openDeep(t, furnished(t).Close(5, 2)).Facts()
	if f.MemberID != 0xa1 || f.ClusterID != 0xc1 || f.Commit != 5 || f.AppliedIndex != 5 || len(f.Problems) > 0 ||
		f.WroteBy.Etcd == nil || *f.WroteBy.Etcd != "3.6.x" || f.ClusterVersion != "3.6.0" || f.Downgrade != "3.5.0" {
		t.Errorf("%+v", f)
	}
	if w := f.WAL; w == nil || w.FirstIndex != 1 || w.LastIndex != 5 || w.LastTerm != 2 ||
		w.RecordTypes["entry"] != 5 || w.Records <= 5 || w.HardState == nil || w.HardState.Commit != 5 ||
		len(w.Damage) > 0 {
		t.Errorf("log: %+v", w)
	}
	d := f.DB
	if d == nil || *d.ConsistentIndex != 5 || *d.Term != 2 || *d.StorageVersion != "3.6.0" || *d.CurrentRevision != 3 ||
		*d.CompactRevision != -1 || *d.Keys != 1 || *d.Revisions != 2 || *d.Tombstones != 0 || d.Leases != 1 ||
		!slices.Contains(d.Buckets, "authUsers") || d.InUse <= 0 || d.InUse > d.Size || len(d.Damage) > 0 {
		t.Errorf("database: %+v", d)
	}
	if len(f.Leases) != 1 || f.Leases[0] != (evidence.LeaseFacts{ID: 0x11, TTL: 60, RemainingTTL: 20}) {
		t.Errorf("leases %+v", f.Leases)
	}
	if want := []evidence.AlarmFacts{{MemberID: 0xa1, Alarm: "NOSPACE"}, {MemberID: 0xa1, Alarm: "CORRUPT"}}; !slices.
		Equal(f.Alarms, want) {
		t.Errorf("alarms %+v", f.Alarms)
	}
	same := func(a, b map[string][]string) bool { return maps.EqualFunc(a, b, slices.Equal[[]string]) }
	if a := f.Auth; !a.Enabled || a.Revision != 7 ||
		!same(a.Users, map[string][]string{"root": {"root", "app"}, "idle": {}}) ||
		!same(a.Roles, map[string][]string{"app": {`READWRITE prefix "/app/"`}}) {
		t.Errorf("auth %+v", f.Auth)
	}
	if m := f.Membership; !slices.Equal(m.Voters, []dumplog.ID{0xa1, 0xa2}) || len(m.Members) != 3 ||
		!slices.Equal(m.Learners, []dumplog.ID{0xb1}) || !slices.Equal(m.Removed, []dumplog.ID{0xd1}) ||
		m.Agree != release.Yes {
		t.Errorf("members %+v", f.Membership)
	}
	if got := evidence.AlarmName(9); got != "alarm(9)" {
		t.Errorf("an alarm without a name is %s", got)
	}
}

// TestListsOfMembersThatDisagree: a member that only the bucket has is no member for raft.
func TestListsOfMembersThatDisagree(t *testing.T) {
	h := furnished(t)
	h.Member(0xe1, false, true)
	if m := openDeep(t, h.Close(5, 2)).Facts().Membership; m.Agree != release.No || len(m.Members) != 4 {
		t.Errorf("agree %v, %d members", m.Agree, len(m.Members))
	}
}

// TestDamageInFactsIsBounded: 20 places are listed, the others are counted, also if they come in two parts.
func TestDamageInFactsIsBounded(t *testing.T) {
	var f evidence.WALFacts
	places := make([]*dumplog.DamageError, 15)
	for i := range places {
		places[i] = &dumplog.DamageError{Kind: dumplog.DamageCRC,
			Pos: dumplog.Pos{Segment: "a", Offset: int64(i)}}
	}
	f.AddDamage(places)
	if len(f.Damage) != 15 || f.DamageOmitted != 0 || f.Damage[14].Offset != 14 {
		t.Errorf("%d places, %d omitted", len(f.Damage), f.DamageOmitted)
	}
	f.AddDamage(places)
	if len(f.Damage) != 20 || f.DamageOmitted != 10 || f.Damage[19].Offset != 4 {
		t.Errorf("%d places, %d omitted", len(f.Damage), f.DamageOmitted)
	}
}

// TestBeforeTheLastTransaction: the state before a change of rows that no entry explains can be read, and one that
// moved the consistent index is not such a change.
func TestBeforeTheLastTransaction(t *testing.T) {
	dir := furnished(t).Close(5, 2)
	drop := func(bucket, key string) {
		clustertest.EditDB(func(tx *bbolt.Tx) error { return tx.Bucket([]byte(bucket)).Delete([]byte(key)) })(t,
			filepath.Join(dir, "member"))
	}
	drop("lease", bigEndian(0x11))
	m := openDeep(t, dir)
	before := m.Before()
	if before == nil || len(before.DB.Leases) != 1 || len(m.DB.Leases) != 0 || before.ConsistentIndex() != 5 ||
		before.MemberID != 0xa1 || before.AppliedMin != 5 {
		t.Errorf("before: %+v", before)
	}
	damageMetas(t, dir)
	drop("authUsers", "idle")
	if before := openDeep(t, dir).Before(); before == nil || len(before.DB.Leases) != 0 ||
		len(before.DB.Auth.Users) != 2 {
		t.Errorf("before the next one: %+v", before)
	}
	damageMetas(t, dir)
	clustertest.EditDB(func(tx *bbolt.Tx) error {
		return tx.Bucket([]byte("meta")).Put([]byte("consistent_index"), []byte(bigEndian(6)))
	})(t, filepath.Join(dir, "member"))
	if before := openDeep(t, dir).Before(); before != nil {
		t.Errorf("a transaction that moved the index: %+v", before)
	}
	if before := (&evidence.Member{}).Before(); before != nil {
		t.Errorf("without a database: %+v", before)
	}
}

// damageMetas expects that nothing is said of the last transaction of copies of a data dir if one of the meta pages is
// damaged, or is not of the transaction before the other.
func damageMetas(t *testing.T, dir string) {
	t.Helper()
	for page := range int64(2) {
		for name, change := range map[string]func(meta []byte){
			"damaged": func(meta []byte) { meta[16] ^= 1 },
			"of a transaction long before": func(meta []byte) {
				binary.LittleEndian.PutUint64(meta[48:], binary.LittleEndian.Uint64(meta[48:])-3)
				sum := fnv.New64a()
				_, _ = sum.Write(meta[:56])
				binary.LittleEndian.PutUint64(meta[56:], sum.Sum64())
			},
		} {
			copied := evidencetest.Copy(t, dir)
			db := filepath.Join(copied, "member", "snap", "db")
			b, err := os.ReadFile(db)
			if err != nil {
				t.Fatal(err)
			}
			change(b[page*4096+16:])
			if err := os.WriteFile(db, b, 0o600); err != nil {
				t.Fatal(err)
			}
			if before := openDeep(t, copied).Before(); before != nil {
				t.Errorf("the meta page %d is %s: %+v", page, name, before)
			}
		}
	}
}

// TestPartsOfASource: the parts that are found are those of an opened source, and a change of one is seen.
func TestPartsOfASource(t *testing.T) {
	dir := furnished(t).Close(5, 2)
	p, err := evidence.Locate(t.Context(), evidence.Spec{Name: "n", Where: dir})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = p.Close() }()
	db := filepath.Join(dir, "member", "snap", "db")
	opened := openDeep(t, dir).Source.Parts()
	if p.Name != "n" || p.Kind != evidence.KindDataDir || p.DB != db || p.WAL != filepath.Join(dir, "member", "wal") ||
		opened.DB != p.DB || opened.WAL != p.WAL || opened.Snap != p.Snap || opened.SnapFile != "" {
		t.Errorf("%+v, opened %+v", p, opened)
	}
	if err := p.Unchanged(t.Context()); err != nil {
		t.Error(err)
	}
	if err := os.Truncate(db, 8192); err != nil {
		t.Fatal(err)
	}
	var changed *evidence.ChangedError
	if err := p.Unchanged(t.Context()); !errors.As(err, &changed) || changed.File == "" {
		t.Errorf("a file was cut: %v", err)
	}
	var bad *evidence.SourceError
	if _, err := evidence.Locate(t.Context(), evidence.Spec{Where: filepath.Join(dir, "none")}); !errors.As(err, &bad) {
		t.Errorf("nothing at the path: %v", err)
	}
}

// TestNamesOfObjects: an object has the name that people use, and a value without a kind is no object.
func TestNamesOfObjects(t *testing.T) {
	for want, k := range map[string]dumpdb.KubeObject{
		"Pod default/web-0, written by kubelet": {Kind: "Pod", Namespace: "default", Name: "web-0", Manager: "kubelet"},
		"Node one":                              {Kind: "Node", Name: "one"},
		"List":                                  {Kind: "List", Namespace: "default"},
	} {
		if o := evidence.ObjectOf(&k); o == nil || o.String() != want {
			t.Errorf("%v, want %s", o, want)
		}
	}
	if o := evidence.ObjectOf(&dumpdb.KubeObject{Encoding: "encrypted", Provider: "kms:v2:vault"}); o != nil {
		t.Errorf("an encrypted value is %v", o)
	}
}
