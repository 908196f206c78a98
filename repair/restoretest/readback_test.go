package restoretest

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"go.etcd.io/bbolt"
	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/server/v3/embed"
	"go.uber.org/zap"

	"github.com/etcd-medic/etcd-medic/compare/backup"
	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/dumpdb"
)

// running starts a server in this process that holds what the tests compare with.
func running(t *testing.T) *clientv3.Client {
	t.Helper()
	cfg := embed.NewConfig()
	cfg.Dir, cfg.LogLevel, cfg.UnsafeNoFsync = filepath.Join(t.TempDir(), "data"), "error", true
	cfg.ZapLoggerBuilder = embed.NewZapLoggerBuilder(zap.NewNop())
	free := []url.URL{{Scheme: "http", Host: "127.0.0.1:0"}}
	cfg.ListenClientUrls, cfg.ListenPeerUrls, cfg.BcryptCost = free, free, 4
	e, err := embed.StartEtcd(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(e.Close)
	cli, err := clientv3.New(clientv3.Config{Endpoints: []string{"http://" + e.Clients[0].Addr().String()},
		DialTimeout: 10 * time.Second, Logger: zap.NewNop()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cli.Close() })
	ctx := t.Context()
	_, err1 := etcdserverpb.NewLeaseClient(cli.ActiveConnection()).LeaseGrant(ctx,
		&etcdserverpb.LeaseGrantRequest{ID: 7, TTL: 1000})
	_, err2 := cli.Put(ctx, "a", "1")
	_, err3 := cli.Put(ctx, "a", "2")
	_, err4 := cli.Put(ctx, "b", "1", clientv3.WithLease(7))
	_, err5 := cli.Put(ctx, "c", "1")
	_, err6 := cli.Delete(ctx, "c")
	_, err7 := cli.RoleAdd(ctx, "r")
	_, err8 := cli.RoleGrantPermission(ctx, "r", "k", "", clientv3.PermissionType(clientv3.PermRead))
	_, err9 := cli.UserAdd(ctx, "u", "p")
	_, err10 := cli.UserGrantRole(ctx, "u", "r")
	if err := errors.Join(err1, err2, err3, err4, err5, err6, err7, err8, err9, err10); err != nil {
		t.Fatal(err)
	}
	return cli
}

// record is a row of bucket key; one without a version is a tombstone.
type record struct {
	mod    int64
	key    string
	create int64
	vers   int64
	value  string
	lease  int64
}

// what the server holds, up to revision 6.
var same = []record{{2, "a", 2, 1, "1", 0}, {3, "a", 2, 2, "2", 0}, {4, "b", 4, 1, "1", 7}, {5, "c", 5, 1, "1", 0},
	{6, "c", 0, 0, "", 0}}

func backupOf(t *testing.T, records []record) *evidence.Member {
	t.Helper()
	path := filepath.Join(t.TempDir(), "db")
	b, err := bbolt.Open(path, 0o600, nil)
	if err != nil {
		t.Fatal(err)
	}
	live := map[string]bool{}
	err = b.Update(func(tx *bbolt.Tx) error {
		for _, name := range []string{"key", "meta"} {
			if _, err := tx.CreateBucket([]byte(name)); err != nil {
				return err
			}
		}
		for _, r := range records {
			at := append(append(binary.BigEndian.AppendUint64(nil, uint64(r.mod)), '_'), make([]byte, 8)...)
			kv := mvccpb.KeyValue{Key: []byte(r.key), Value: []byte(r.value), ModRevision: r.mod,
				CreateRevision: r.create, Version: r.vers, Lease: r.lease}
			if r.vers == 0 {
				at, kv = append(at, 't'), mvccpb.KeyValue{Key: []byte(r.key)}
			}
			live[r.key] = r.vers > 0
			v, err := kv.Marshal()
			if err != nil {
				return err
			}
			if err := tx.Bucket([]byte("key")).Put(at, v); err != nil {
				return err
			}
		}
		return nil
	})
	if err := errors.Join(err, b.Close()); err != nil {
		t.Fatal(err)
	}
	db, err := dumpdb.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	kv := &dumpdb.KVStats{}
	for _, l := range live {
		if l {
			kv.LiveKeys++
		}
	}
	return &evidence.Member{DB: &evidence.DB{Handle: db, KV: kv}}
}

func differences(d *drill) string {
	var out []string
	for _, x := range d.res.Differences {
		out = append(out, strings.TrimSpace(x.What+" "+string(x.Key))+": "+x.InBackup+", "+x.Answered)
	}
	return strings.Join(out, "; ")
}

// TestKeysOfServer: every key is compared with the newest record of the backup, in any number of parts.
func TestKeysOfServer(t *testing.T) {
	cli := running(t)
	changed := func(i int, change func(*record)) []record {
		out := slices.Clone(same)
		change(&out[i])
		return out
	}
	for name, c := range map[string]struct {
		records    []record
		keys, want string
		hash       bool
	}{
		"equal": {same, "2 keys at revision 6, 0 differ", "", true},
		"value": {changed(1, func(r *record) { r.value = "x" }), "2 keys at revision 6, 1 differ",
			"key a: other content at mod revision 3, create 2, version 2, value of 1 bytes", false},
		"version": {changed(1, func(r *record) { r.vers = 3 }), "2 keys at revision 6, 1 differ",
			"key a: other content at mod revision 3, create 2, version 2, value of 1 bytes", false},
		"lease": {changed(2, func(r *record) { r.lease = 0 }), "2 keys at revision 6, 1 differ",
			"key b: other content at mod revision 4, create 4, version 1, value of 1 bytes", false},
		"older value": {changed(0, func(r *record) { r.value = "x" }), "2 keys at revision 6, 0 differ", "", false},
		"newest record missing": {slices.Delete(slices.Clone(same), 1, 2), "2 keys at revision 6, 1 differ",
			"key a: mod revision 2, mod revision 3", false},
		"key missing in the backup": {slices.Delete(slices.Clone(same), 2, 3), "2 keys at revision 6, 1 differ",
			"key b: absent, mod revision 4", false},
		"key missing in the server": {same[:4], "2 keys at revision 6, 1 differ", "key c: mod revision 5, absent", false},
		"mark of a raised revision": {append([]record{{1, "", 0, 1, "", 0}}, same...), "2 keys at revision 6, 0 differ",
			"", false},
	} {
		for _, most := range []int64{0, 1} {
			d := &drill{m: backupOf(t, c.records), res: &backup.Drill{Revision: 6}, o: Options{MaxMarks: most}}
			says, err := d.keys(t.Context(), cli)
			if err != nil || says != c.keys || differences(d) != c.want || d.res.Keys != 2 {
				t.Errorf("%s, %d at a time: %s, %v, %s", name, most, says, err, differences(d))
			}
			d.res.Differences = nil
			if _, err := d.hash(t.Context(), cli); name != "key missing in the server" &&
				(err != nil || (differences(d) == "") != c.hash) {
				t.Errorf("%s: hash %s, %v", name, differences(d), err)
			}
		}
	}
	d := &drill{m: backupOf(t, same), res: &backup.Drill{Revision: 6}}
	if says, err := d.hash(t.Context(), cli); err != nil || !strings.HasSuffix(says, " at revision 6") {
		t.Errorf("%s, %v", says, err)
	}
	ranges, err := readMarks(t.Context(), d.m.DB.Handle, 0, 1)
	if err != nil {
		t.Fatal(err)
	}
	for _, bounds := range [][]string{{"\x00"}, {"\x00", "b"}, {"\x00", "a", "c"}} {
		ranges.bounds = bounds
		if n, err := d.part(t.Context(), cli, ranges); err != nil || n != 2 || differences(d) != "" {
			t.Errorf("%q: %d keys, %v, %s", bounds, n, err, differences(d))
		}
	}
	if _, err := cli.Compact(t.Context(), 4); err != nil {
		t.Fatal(err)
	}
	if says, err := d.hash(t.Context(), cli); err != nil || differences(d) != "" ||
		says != "not comparable: compacted at 4, the backup at -1" {
		t.Errorf("%s, %v, %s", says, err, differences(d))
	}
}

// TestRanges: an answer of a server has about 16 MB of records, whatever their number.
func TestRanges(t *testing.T) {
	var records []record
	for i := range int64(67) {
		records = append(records, record{i + 2, fmt.Sprintf("k%02d", i), i + 2, 1, strings.Repeat("v", sampleEvery), 0})
	}
	for n, want := range map[int]string{64: "\x00", 67: "\x00 k64"} {
		m, err := readMarks(t.Context(), backupOf(t, records[:n]).DB.Handle, 0, 1)
		if err != nil || strings.Join(m.bounds, " ") != want || len(m.list) != n {
			t.Errorf("%d records: %q, %d, %v", n, m.bounds, len(m.list), err)
		}
	}
}

// TestRestOfServer: leases that cannot have expired, users, roles and alarms are those of the backup.
func TestRestOfServer(t *testing.T) {
	cli := running(t)
	lease := func(id dumpdb.ID, ttl, remaining int64) dumpdb.Lease {
		return dumpdb.Lease{ID: id, TTL: ttl, RemainingTTL: remaining}
	}
	for name, c := range map[string]struct {
		change func(*evidence.DB)
		want   string
	}{
		"equal":    {func(*evidence.DB) {}, ""},
		"no lease": {func(db *evidence.DB) { db.Leases = nil }, "lease 7: none, a lease"},
		"longer": {func(db *evidence.DB) { db.Leases = append(db.Leases, lease(8, 11, 0), lease(9, 5, 11)) },
			"lease 8: TTL 11 s, no such lease; lease 9: TTL 5 s, no such lease"},
		"shorter": {func(db *evidence.DB) { db.Leases = append(db.Leases, lease(8, 10, 0), lease(9, 99, 10)) }, ""},
		"user":    {func(db *evidence.DB) { db.Auth.Users = nil }, "user u: none, r"},
		"role of a user": {func(db *evidence.DB) { db.Auth.Users[0].Roles = []string{"r", "s"} },
			"user u: r s, r"},
		"role": {func(db *evidence.DB) { db.Auth.Roles[0].Name = "s" },
			`role s: [READ key "k"], none; role r: none, [READ key "k"]`},
		"permission": {func(db *evidence.DB) { db.Auth.Roles[0].Perms[0].Type = 1 },
			`role r: [WRITE key "k"], [READ key "k"]`},
	} {
		m := &evidence.Member{DB: &evidence.DB{Leases: []dumpdb.Lease{lease(7, 1000, 0)}, Auth: dumpdb.Auth{
			Users: []dumpdb.User{{Name: "u", Roles: []string{"r"}}},
			Roles: []dumpdb.Role{{Name: "r", Perms: []dumpdb.Permission{{Key: []byte("k")}}}}}}}
		c.change(m.DB)
		d := &drill{m: m, res: &backup.Drill{}, o: Options{Timeout: 10 * time.Second}}
		says, err := d.small(t.Context(), cli)
		want := fmt.Sprintf("1 leases, %d users, %d roles", len(m.DB.Auth.Users), len(m.DB.Auth.Roles))
		if err != nil || says != want || differences(d) != c.want {
			t.Errorf("%s: %s, %v, %s", name, says, err, differences(d))
		}
	}
	raise := &etcdserverpb.AlarmRequest{Action: etcdserverpb.AlarmRequest_ACTIVATE, MemberID: 1,
		Alarm: etcdserverpb.AlarmType_NOSPACE}
	if _, err := etcdserverpb.NewMaintenanceClient(cli.ActiveConnection()).Alarm(t.Context(), raise); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"NOSPACE: alarms: 1 of 1", "none: alarms: 1, 0"} {
		d := &drill{m: &evidence.Member{DB: &evidence.DB{Alarms: make([]dumpdb.Alarm, 1)}}, res: &backup.Drill{}}
		says, err := d.disarm(t.Context(), cli)
		first := strings.HasPrefix(want, "NOSPACE")
		if err != nil || strings.HasPrefix(says, "NOSPACE: ") != first ||
			(differences(d) == "") != first || !first && differences(d) != "alarms: 1, 0" {
			t.Errorf("%s: %s, %v, %s", want, says, err, differences(d))
		}
	}
	if l, err := cli.AlarmList(t.Context()); err != nil || len(l.Alarms) > 0 {
		t.Errorf("%v, %v", l, err)
	}
}
