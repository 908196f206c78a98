package preflight

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/membershippb"
	"go.etcd.io/raft/v3/raftpb"

	"github.com/etcd-medic/etcd-medic/compare/check"
	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/compare/evidence/clustertest"
	"github.com/etcd-medic/etcd-medic/dumplog"
	"github.com/etcd-medic/etcd-medic/internal/ctxtest"
	"github.com/etcd-medic/etcd-medic/release"
)

// bytesOf is a message as an entry has it.
func bytesOf(t *testing.T, m interface{ Marshal() ([]byte, error) }) []byte {
	t.Helper()
	b, err := m.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// TestVisit: of a log only the entries are kept that matter to some version, with what rules need of them.
func TestVisit(t *testing.T) {
	put := &pb.PutRequest{Key: []byte("k")}
	request := func(r *pb.InternalRaftRequest) *dumplog.Entry {
		return &dumplog.Entry{Type: dumplog.EntryNormal, Data: bytesOf(t, r)}
	}
	learner := &raftpb.ConfChange{Type: raftpb.ConfChangeAddLearnerNode, NodeID: 0xab, Context: []byte(`{"id":171}`)}
	for name, c := range map[string]struct {
		entry *dumplog.Entry
		want  func(x *entry) bool
	}{
		"a put":          {request(&pb.InternalRaftRequest{Put: put}), nil},
		"an empty entry": {&dumplog.Entry{Type: dumplog.EntryNormal}, nil},
		"no request":     {&dumplog.Entry{Type: dumplog.EntryNormal, Data: []byte{0xff, 0xff}}, nil},
		"a user's put":   {request(&pb.InternalRaftRequest{Header: &pb.RequestHeader{Username: "é"}, Put: put}), nil},
		"a v2 request": {&dumplog.Entry{Data: bytesOf(t, &pb.Request{Method: "PUT", Path: "/1/a"})},
			func(x *entry) bool { return x.v2 != nil && x.v2.Path == "/1/a" }},
		"a learner": {&dumplog.Entry{Type: dumplog.EntryConfChange, Data: bytesOf(t, learner)}, func(x *entry) bool {
			return x.conf != nil && x.conf.NodeID == 0xab && string(x.conf.Context) == `{"id":171}`
		}},
		"a version": {request(&pb.InternalRaftRequest{
			ClusterVersionSet: &membershippb.ClusterVersionSetRequest{Ver: "3.5.0"}}),
			func(x *entry) bool { return x.version == "3.5.0" }},
		"a checkpoint": {request(&pb.InternalRaftRequest{LeaseCheckpoint: &pb.LeaseCheckpointRequest{}}),
			func(x *entry) bool { return x.kind == dumplog.KindLeaseCheckpoint }},
		"a user, no text": {&dumplog.Entry{Data: slices.Concat([]byte{0xa2, 0x06, 3, 0x12, 1, 0xff},
			bytesOf(t, &pb.InternalRaftRequest{Put: put}))},
			func(x *entry) bool { return x.badUser == "\xff" }},
	} {
		d := &dir{}
		c.entry.Term, c.entry.Index, c.entry.Pos = 2, 7, dumplog.Pos{Segment: "1.wal", Offset: 64}
		d.visit(3)(c.entry)
		clear(c.entry.Data) // it is a buffer that is used again
		kept := *d.found[3]
		if len(kept) > 1 || (len(kept) == 1) != (c.want != nil) {
			t.Errorf("%s: %+v", name, kept)
			continue
		}
		if c.want != nil && (!c.want(&kept[0]) || kept[0].term != 2 || kept[0].index != 7 ||
			kept[0].pos != c.entry.Pos) {
			t.Errorf("%s: %+v", name, kept[0])
		}
	}
}

// TestPrepare: an entry that a later append replaced is not read again. Segments are in the order of the log.
func TestPrepare(t *testing.T) {
	for name, c := range map[string]struct {
		at   dumplog.Overwrite
		left []uint64
	}{
		"none": {dumplog.Overwrite{Index: 99}, []uint64{5, 6, 7}},
		"from the second on, after all": {dumplog.Overwrite{Index: 6, Pos: dumplog.Pos{Segment: "b", Offset: 50}},
			[]uint64{5}},
		"from the last on": {dumplog.Overwrite{Index: 7, Pos: dumplog.Pos{Segment: "b", Offset: 50}},
			[]uint64{5, 6}},
		"by what stands there": {dumplog.Overwrite{Index: 7, Pos: dumplog.Pos{Segment: "b", Offset: 10}},
			[]uint64{5, 6, 7}},
		"in an earlier segment": {dumplog.Overwrite{Index: 5, Pos: dumplog.Pos{Segment: "a", Offset: 99}},
			[]uint64{7}},
		"between two entries of one part": {dumplog.Overwrite{Index: 5, Pos: dumplog.Pos{Segment: "a", Offset: 20}},
			[]uint64{6, 7}},
	} {
		d := made(6)
		m := d.m
		m.WAL.Summary.Segments = []dumplog.Segment{{Name: "a"}, {Name: "b"}}
		m.WAL.Summary.Overwrites = []dumplog.Overwrite{c.at}
		at := func(segment string, offset int64, index uint64) entry {
			return entry{index: index, pos: dumplog.Pos{Segment: segment, Offset: offset}}
		}
		d.found = map[int]*[]entry{1: {at("b", 10, 7)}, 0: {at("a", 10, 5), at("a", 20, 6)}}
		d.prepare(m)
		var left []uint64
		for _, e := range d.entries {
			left = append(left, e.index)
		}
		if !slices.Equal(left, c.left) {
			t.Errorf("replaced %s: left %v, want %v", name, left, c.left)
		}
	}
	d := made(6)
	d.m.WAL.Log, d.found = nil, map[int]*[]entry{0: {{index: 5}}}
	if d.prepare(d.m); len(d.entries) > 0 {
		t.Errorf("without a log: %+v", d.entries)
	}
}

// TestRunEnds: wherever the caller gives up, there is no result. A folder of several data dirs is not one dir.
func TestRunEnds(t *testing.T) {
	root := t.TempDir()
	dir := clustertest.Synth{Members: 1, Entries: 20, Keys: 5, Value: 10}.Write(t, root)[0]
	to := Version{Minor: 6, Patch: -1}
	said := ""
	ctx := ctxtest.EndingAfter(1 << 40)
	whole, err := Run(ctx, evidence.Spec{Where: dir}, to, Options{Progress: func(s string) { said = s }})
	if err != nil || !whole.Boots.Certain() || !whole.InputsUnchanged || said != "reading "+whole.Source.Name ||
		whole.Source.Files == 0 || whole.Source.SHA256 == "" {
		t.Fatalf("%v, it says %q: %+v", err, said, whole)
	}
	asked, ended := 1<<40-ctx.Left(), 0
	for n := int64(0); n < asked; n += 1 + asked/20 {
		r, err := Run(ctxtest.EndingAfter(n), evidence.Spec{Where: dir}, to, Options{})
		switch {
		case errors.Is(err, context.Canceled) && r == nil:
			ended++
		case err != nil || r.Boots != whole.Boots || len(r.Rules) != len(whole.Rules):
			t.Errorf("after %d of %d: %v, %+v", n, asked, err, r)
		}
	}
	if r, err := Run(ctxtest.EndingAfter(asked-1), evidence.Spec{Where: dir}, to, Options{}); r != nil ||
		!errors.Is(err, context.Canceled) || ended == 0 {
		t.Errorf("at its end: %v, ended %d times", err, ended)
	}
	clustertest.Synth{Members: 2, Entries: 5, Keys: 5, Value: 10}.Write(t, filepath.Join(root, "more"))
	var bad *evidence.SourceError
	if _, err := Run(t.Context(), evidence.Spec{Where: filepath.Join(root, "more")}, to, Options{}); !errors.As(err,
		&bad) || bad.Found != "2 sources" {
		t.Errorf("two data dirs: %v", err)
	}
}

// TestRulesOnVersions: which version wrote the dir, as far as the database says it, and what another one makes of that.
func TestRulesOnVersions(t *testing.T) {
	for _, c := range []struct {
		rule             Rule
		minor            int
		cluster, storage string
		wrote            int
		seen, says       string
	}{
		{hiddenVersion, 4, "3.5.0", "", 0, "", "etcd 3.5 wrote the dir; etcd 3.4 opens"},
		{hiddenVersion, 4, "3.4.0", "", 0, "", ""},
		{hiddenVersion, 4, "3.4.0", "3.6.0", 0, "", "etcd 3.6 wrote the dir"},
		{hiddenVersion, 4, "3.5.0", "", 0, "3.5.0", ""},
		{hiddenVersion, 4, "", "", 0, "", ""},
		{hiddenVersion, 4, "no database", "", 0, "", ""},
		{raisesVersions, 6, "3.5.0", "", 0, "", "the cluster version rises from 3.5 to 3.6"},
		{raisesVersions, 6, "3.6.0", "", 0, "", ""},
		{raisesVersions, 6, "3.7.0", "", 0, "", ""},
		{raisesVersions, 6, "no database", "", 0, "", ""},
		{skipsLines, 6, "3.4.0", "", 0, "", "from 3.4 to 3.6 a running cluster"},
		{skipsLines, 6, "3.5.0", "", 0, "", ""},
		{skipsLines, 6, "3.5.0", "", 4, "", ""},
		{skipsLines, 6, "3.3.0", "", 5, "", ""},
		{skipsLines, 6, "no database", "", 4, "", "from 3.4 to 3.6"},
	} {
		d := made(c.minor)
		if d.m.DB.Cluster.Version = c.cluster; c.cluster == "no database" {
			d.m.DB = nil
		} else {
			d.m.DB.Meta.StorageVersion = c.storage
		}
		if c.wrote > 0 {
			d.m.Version = evidence.Version{Minor: c.wrote, Text: fmt.Sprintf("3.%d.x", c.wrote)}
		}
		if c.seen != "" {
			d.entries = []entry{{index: 11, v2: &dumplog.V2Request{Method: "PUT", Path: "/0/version", Val: c.seen}}}
		}
		if v := c.rule.Run(d); (v == nil) != (c.says == "") || v != nil && !strings.HasPrefix(v.says, c.says) {
			t.Errorf("%+v: %+v", c, v)
		}
	}
}

// TestWhatToDo: each violated rule has its advice, in order. A dir that boots and violates none asks for a backup.
func TestWhatToDo(t *testing.T) {
	for name, c := range map[string]struct {
		minor int
		boots release.Answer
		rules []Outcome
		want  []string
	}{
		"nothing is violated": {6, release.Yes, []Outcome{{Rule: "P22", Outcome: check.Holds}},
			[]string{"take a backup (etcdctl"}},
		"whether it boots is open": {6, release.Unknown, nil, nil},
		"two rules": {6, release.Yes, []Outcome{{Rule: "P21", Outcome: check.Violated}, {Rule: "P22",
			Outcome: check.Violated}, {Rule: "P02", Outcome: check.NotChecked}},
			[]string{"upgrade the cluster one minor", "take a backup and verify it first"}},
		"v2 requests, to 3.7": {7, release.No, []Outcome{{Rule: "P13", Outcome: check.Violated}},
			[]string{"let the old version take", "v2 writes must end"}},
		"v2 requests, to 3.6": {6, release.No, []Outcome{{Rule: "P13", Outcome: check.Violated}},
			[]string{"v2 writes must end"}},
	} {
		got := made(c.minor).ready(&Result{Boots: c.boots, Rules: c.rules})
		if !slices.EqualFunc(got, c.want, strings.HasPrefix) {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}
