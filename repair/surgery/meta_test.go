package surgery_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/server/v3/etcdserver/api/snap"
	"go.etcd.io/etcd/server/v3/etcdserver/api/v2store"
	"go.uber.org/zap"

	"github.com/etcd-medic/etcd-medic/compare/evidence/clustertest"
	"github.com/etcd-medic/etcd-medic/compare/evidence/evidencetest"
	"github.com/etcd-medic/etcd-medic/dumpdb"
	"github.com/etcd-medic/etcd-medic/dumplog"
	"github.com/etcd-medic/etcd-medic/refusal"
	"github.com/etcd-medic/etcd-medic/repair/datadir"
	"github.com/etcd-medic/etcd-medic/repair/surgery"
)

// withEdits is a copy of a data dir with an edited db.
func withEdits(t *testing.T, dir string, edits ...datadir.Edit) string {
	t.Helper()
	dir = evidencetest.Copy(t, dir)
	ok(t, datadir.EditNew(dbOf(dir), edits...))
	evidencetest.Unchanged(t, dir)
	return dir
}

// refuses runs a change that must not be made, and makes it with the flag that the refusal names; "" names none.
func refuses(t *testing.T, c surgery.Change, dir string, with []string, flag, says string) {
	t.Helper()
	_, _, err := repair(t, c, dir, with)
	var r *refusal.Error
	if !errors.As(err, &r) || r.Flag != flag || !strings.Contains(err.Error(), says) {
		t.Errorf("%+v: %v (flag %+v)", c, err, r)
		return
	}
	if flag != "" {
		if _, report, err := repair(t, c, dir, with, flag); err != nil || !slices.Contains(report.Accepted, flag) {
			t.Errorf("%+v, accepted: %v", c, err)
		}
	}
}

// TestConsistentIndex: the index may be moved over entries that change nothing, and to where the database really is;
// not else.
func TestConsistentIndex(t *testing.T) {
	dir := filepath.Join(evidencetest.Incident(t, "m-healthy-3.6"), "node1")
	evidencetest.Unchanged(t, dir)
	set := func(n uint64) surgery.Meta { return surgery.Meta{ConsistentIndex: &n} }
	out, r, err := repair(t, set(336), dir, nil) // 337 is a leader's first entry or a publish
	ok(t, err)
	db, err := dumpdb.Open(dbOf(out))
	ok(t, err)
	defer db.Close()
	if m, err := db.MetaBucket(); err != nil || *m.ConsistentIndex != 336 || *m.Term != 2 ||
		r.After.Class != "healthy" {
		t.Errorf("meta %+v, %v, %+v", m, err, r)
	}
	refuses(t, set(300), dir, nil, surgery.AcceptDivergence, "applied twice")
	refuses(t, set(337), dir, nil, "", "already")
	refuses(t, set(400), dir, nil, "", "log ends at 337")
	refuses(t, set(1), dir, nil, "", "raft snapshot")
	// A db that is behind on purpose: the index was lowered, the content is there. Raising it again is right.
	low := clustertest.Synth{Members: 1, Entries: 200, Keys: 10, Value: 30}.Write(t, t.TempDir())[0]
	behind := withEdits(t, low, datadir.SetConsistentIndex(150))
	if _, r, err := repair(t, set(201), behind, nil); err != nil || r.Before.Class == "healthy" ||
		r.After.Class != "healthy" {
		t.Errorf("raised to where the database is: %v, %+v", err, r)
	}
	// And one that really lacks the effects: raising would skip them.
	lacking := clustertest.Synth{Members: 1, Entries: 200, Keys: 10, Value: 30}.Write(t, t.TempDir())[0]
	ok(t, os.Remove(dbOf(lacking)))
	clustertest.Synth{Members: 1, Entries: 150, Keys: 10, Value: 30}.WriteDB(t, dbOf(lacking))
	refuses(t, set(201), lacking, nil, surgery.AcceptDivergence, "never applied")
	// And one whose index ran ahead: lowering it lets the server apply what is missing.
	ahead := withEdits(t, lacking, datadir.SetConsistentIndex(201))
	if _, r, err := repair(t, set(151), ahead, nil); err != nil || r.Before.Class == "healthy" ||
		r.After.Class != "healthy" && r.After.Class != "lagging" {
		t.Errorf("lowered to where the database is: %v, %+v", err, r)
	}
}

// TestAuthRevision on the incident of entries applied twice: the log says 20.
func TestAuthRevision(t *testing.T) {
	root := evidencetest.Incident(t, "a-auth-revision-replay")
	evidencetest.Unchanged(t, root)
	node := func(n string) string { return filepath.Join(root, n) }
	set := func(n uint64) surgery.Meta { return surgery.Meta{AuthRevision: &n} }
	out, _, err := repair(t, set(20), node("node1"), nil)
	ok(t, err)
	db, err := dumpdb.Open(dbOf(out))
	ok(t, err)
	defer db.Close()
	if a, err := db.Auth(); err != nil || a.Revision != 20 {
		t.Errorf("auth %d, %v", a.Revision, err)
	}
	refuses(t, set(24), node("node1"), nil, surgery.AcceptDivergence, "the log gives 20")
	refuses(t, set(29), node("node1"), nil, "", "already")
}

func TestStorageVersion(t *testing.T) {
	dir := filepath.Join(evidencetest.Incident(t, "m-healthy-3.6"), "node1")
	old := filepath.Join(evidencetest.Incident(t, "m-healthy-3.5"), "node1")
	evidencetest.Unchanged(t, dir, old)
	set := func(s string) surgery.Meta { return surgery.Meta{StorageVersion: &s} }
	refuses(t, set(""), dir, nil, surgery.AcceptDivergence, "servers of an older line")
	refuses(t, set("3.7.0"), dir, nil, "", "do not start")
	refuses(t, set("3.6.0"), dir, nil, "", "already")
	refuses(t, set("4.0"), dir, nil, "", "no server writes")
	refuses(t, set("3.6.0"), old, nil, "", "do not start")
}

func TestMembersFromRaft(t *testing.T) {
	dirs := clustertest.Synth{Members: 3, Entries: 20, Keys: 3, Value: 10}.Write(t, t.TempDir())
	stale := withEdits(t, dirs[0], datadir.SetMembers([]datadir.Member{{ID: 0xdead, Name: "old",
		PeerURLs: []string{"http://x:1"}}}, nil), datadir.SetConfState([]uint64{0xdead}, nil))
	out, r, err := repair(t, surgery.Meta{MembersFromRaft: true, ConfStateFromRaft: true}, stale, dirs[1:])
	ok(t, err)
	db, err := dumpdb.Open(dbOf(out))
	ok(t, err)
	defer db.Close()
	list, err := db.Members()
	ok(t, err)
	m, err := db.MetaBucket()
	ok(t, err)
	if len(list) != 3 || list[1].ID != 0xa2 || list[1].PeerURLs[0] != "http://127.0.0.1:2382" ||
		r.After.Class != "healthy" {
		t.Errorf("members %+v; %+v", list, r)
	}
	if d := cmp.Diff([]dumpdb.ID{0xa1, 0xa2, 0xa3}, m.ConfState.Voters); d != "" {
		t.Error(d)
	}
	refuses(t, surgery.Meta{MembersFromRaft: true}, dbOf(dirs[0]), nil, "", "no ConfState")
}

func TestAlarms(t *testing.T) {
	dirs := clustertest.Synth{Members: 3, Entries: 20, Keys: 3, Value: 10}.Write(t, t.TempDir())
	orphan := datadir.PutBucketKey("alarm", []byte{8, 7, 16, 1}, nil) // member 7 is none
	var with []string
	for _, d := range dirs {
		with = append(with, withEdits(t, d, orphan))
	}
	clear := surgery.Meta{ClearAlarms: []surgery.AlarmRef{{Member: 7}}}
	refuses(t, clear, with[0], nil, surgery.AcceptDivergence, "may have the alarm too")
	refuses(t, clear, with[0], with[1:], surgery.AcceptDivergence, "node2 has the alarm")
	refuses(t, surgery.Meta{ClearAlarms: []surgery.AlarmRef{{Member: 7, Kind: 2}}}, with[0], nil, "", "no such alarm")
	out, _, err := repair(t, clear, with[0], dirs[1:])
	ok(t, err)
	db, err := dumpdb.Open(dbOf(out))
	ok(t, err)
	defer db.Close()
	if a, err := db.Alarms(); err != nil || len(a) != 0 {
		t.Errorf("alarms %v, %v", a, err)
	}
	for s, good := range map[string]bool{"7": true, "fedcba9876543210:corrupt": true, "7:NOSPACE": true, "x": false,
		"0": true, "0:CORRUPT": true, "7:FULL": false, "": false} {
		if _, err := surgery.ParseAlarm(s); (err == nil) != good {
			t.Errorf("%q: %v", s, err)
		}
	}
}

// TestAlarmOfMember0 clears the alarm that a server raises where it cannot tell which member is wrong, and leaves those
// of members alone.
func TestAlarmOfMember0(t *testing.T) {
	dirs := clustertest.Synth{Members: 1, Entries: 20, Keys: 3, Value: 10}.Write(t, t.TempDir())
	for name, key := range map[string][]byte{"left out": {16, 2}, "written": {8, 0, 16, 2}} {
		dir := withEdits(t, dirs[0], datadir.PutBucketKey("alarm", key, nil),
			datadir.PutBucketKey("alarm", []byte{8, 7, 16, 2}, nil))
		ref, err := surgery.ParseAlarm("0:CORRUPT")
		ok(t, err)
		out, _, err := repair(t, surgery.Meta{ClearAlarms: []surgery.AlarmRef{ref}}, dir, nil)
		ok(t, err)
		db, err := dumpdb.Open(dbOf(out))
		ok(t, err)
		if a, err := db.Alarms(); err != nil || len(a) != 1 || a[0].MemberID != 7 {
			t.Errorf("member 0 %s: alarms %v, %v", name, a, err)
		}
		ok(t, db.Close())
	}
}

// TestDropV2 puts v2 keys into a real .snap file with etcd's own v2 store and reads the result with it.
func TestDropV2(t *testing.T) {
	dir := evidencetest.Copy(t, filepath.Join(evidencetest.Incident(t, "m-healthy-3.6"), "node1"))
	files, err := filepath.Glob(filepath.Join(dir, "member", "snap", "*.snap"))
	if err != nil || len(files) == 0 {
		t.Fatalf("%v %v", files, err)
	}
	newest := slices.Max(files)
	lg := zap.NewNop()
	s, err := snap.Read(lg, newest)
	ok(t, err)
	st := v2store.New("/0", "/1")
	ok(t, st.Recovery(s.Data))
	for i := range 3 {
		_, err := st.Set(fmt.Sprintf("/1/app/k%d", i), false, "secret value", v2store.TTLOptionSet{})
		ok(t, err)
	}
	s.Data, err = st.Save()
	ok(t, err)
	ok(t, os.Remove(newest))
	ok(t, snap.New(lg, filepath.Dir(newest)).SaveSnap(*s))
	evidencetest.Unchanged(t, dir)
	if f, err := dumplog.ReadSnapFile(newest); err != nil || len(f.V2.UserKeys) == 0 {
		t.Fatalf("the .snap file has no v2 keys: %v", err)
	}
	out, r, err := repair(t, surgery.Meta{DropV2: true}, dir, nil)
	ok(t, err)
	got, err := snap.Read(lg, filepath.Join(out, "member", "snap", filepath.Base(newest)))
	ok(t, err)
	if d := cmp.Diff(s.Metadata, got.Metadata); d != "" {
		t.Error(d)
	}
	if strings.Contains(string(got.Data), "secret value") || !json.Valid(got.Data) {
		t.Error("v2 keys are left")
	}
	clean := v2store.New("/0", "/1")
	ok(t, clean.Recovery(got.Data))
	ev, err := clean.Get("/0/members", true, true)
	if err != nil || len(ev.Node.Nodes) != 3 {
		t.Errorf("members: %v, %+v", err, ev)
	}
	if ev, err := clean.Get("/1", true, true); err != nil || len(ev.Node.Nodes) != 0 || len(r.GivesUp) == 0 {
		t.Errorf("/1: %v, %+v; gives up %v", err, ev, r.GivesUp)
	}
	refuses(t, surgery.Meta{DropV2: true}, out, nil, "", "no .snap file")
	refuses(t, surgery.Meta{}, dir, nil, "", "nothing would change")
}

// TestV2KeysElsewhere: v2 keys of other members, and v2 requests in the log that a server would execute, remain.
func TestV2KeysElsewhere(t *testing.T) {
	request := func(path, value string) etcdserverpb.Request {
		return etcdserverpb.Request{Method: "PUT", Path: path, Val: value}
	}
	dir := func(name string, id uint64, later ...etcdserverpb.Request) string {
		h := clustertest.NewHand(t, t.TempDir(), name, id, 0xc1)
		h.Found(false, 0xa1, 0xa2)
		h.Member(0xa1, false, true)
		h.Member(0xa2, false, true)
		h.Request(2, 3, nil)
		h.V2Request(2, 4, request("/1/app", "v"), "/1/app")
		h.Request(2, 5, nil)
		h.State(2, 0xa1, 5)
		h.Snapshot(2, 5, 0xa1, 0xa2)
		index := uint64(5)
		for _, r := range later {
			index++
			h.V2Request(2, index, r, "/1/app")
		}
		h.State(2, 0xa1, index)
		return h.Close(index, 2)
	}
	publish := request("/0/members/a1/attributes", `{"name":"node1","clientURLs":["http://127.0.0.1:2379"]}`)
	for name, c := range map[string]struct {
		later []etcdserverpb.Request
		peer  bool
		notes []string
	}{
		"none":            {nil, false, nil},
		"another member":  {nil, true, []string{"node2 has v2 keys too"}},
		"a later request": {[]etcdserverpb.Request{request("/1/b", "v")}, false, []string{"the log has 1 v2 requests"}},
		"a publish":       {[]etcdserverpb.Request{publish}, false, nil},
		"one of two": {[]etcdserverpb.Request{publish, request("/1/b", "v")}, true,
			[]string{"node2 has v2 keys too", "the log has 1 v2 requests"}},
	} {
		var with []string
		if c.peer {
			with = append(with, dir("node2", 0xa2, c.later...))
		}
		source := dir("node1", 0xa1, c.later...)
		_, r, err := repair(t, surgery.Meta{DropV2: true}, source, with, surgery.AcceptDivergence)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		var got []string
		for _, n := range r.Notes {
			if strings.Contains(n, "v2") {
				got = append(got, n)
			}
		}
		if !slices.EqualFunc(got, c.notes, strings.HasPrefix) {
			t.Errorf("%s: %q, want %q", name, got, c.notes)
		}
	}
}
