package rebuild_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/server/v3/storage/wal"
	"go.etcd.io/raft/v3/raftpb"
	"go.uber.org/zap"

	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/compare/evidence/evidencetest"
	"github.com/etcd-medic/etcd-medic/compare/replay"
	"github.com/etcd-medic/etcd-medic/refusal"
	"github.com/etcd-medic/etcd-medic/repair/rebuild"
)

// small is a short history whose entries are easy to name.
func small(t *testing.T) (*recorder, string) {
	r := record(t)
	put := func(k, v string) {
		r.do(func(c *clientv3.Client) error { return must(c.Put(ctx(), k, v)) })
	}
	put("a", "1")
	put("a", "wrong")
	put("b", "1")
	r.do(func(c *clientv3.Client) error {
		return must(c.Txn(ctx()).If(clientv3.Compare(clientv3.Value("a"), "=", "wrong")).Then(clientv3.OpPut("c",
			"follows")).Else(clientv3.OpPut("d", "otherwise")).Commit())
	})
	put("a", "last")
	put("e", "1")
	r.do(func(c *clientv3.Client) error {
		return must(c.Txn(ctx()).If(clientv3.Compare(clientv3.ModRevision("e"), "=", 7)).Then(clientv3.OpPut("e",
			"2")).Commit())
	})
	return r, r.stop()
}

// rewritten copies a log into a new WAL folder, entry by entry: change may alter one or drop it.
func rewritten(t *testing.T, dir string, change func(*raftpb.Entry) bool) string {
	t.Helper()
	set, err := evidence.Open(ctx(), []evidence.Spec{{Where: dir}}, evidence.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer set.Close()
	m := set.Members[0]
	meta, err := (&etcdserverpb.Metadata{NodeID: uint64(m.MemberID), ClusterID: uint64(m.ClusterID)}).Marshal()
	if err != nil {
		t.Fatal(err)
	}
	out := filepath.Join(t.TempDir(), "wal")
	w, err := wal.Create(zap.NewNop(), out, meta)
	if err != nil {
		t.Fatal(err)
	}
	w.SetUnsafeNoFsync()
	for e, err := range replay.Log(ctx(), set.Members) {
		if err != nil {
			t.Fatal(err)
		}
		x := raftpb.Entry{Term: e.Term, Index: e.Index, Type: raftpb.EntryType(e.Type), Data: bytes.Clone(e.Data)}
		if !change(&x) {
			continue
		}
		vote := uint64(1)
		if e.Term == 1 { // only a restore writes a vote there
			vote = 0
		}
		if err := w.Save(raftpb.HardState{Term: e.Term, Vote: vote, Commit: e.Index}, []raftpb.Entry{x}); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out
}

func refused(t *testing.T, what string, o rebuild.Options, text string) *refusal.Error {
	t.Helper()
	_, err := run(t, o)
	var r *refusal.Error
	if !errors.As(err, &r) || !strings.Contains(err.Error(), text) {
		t.Errorf("%s: %v, want a refusal with %q", what, err, text)
		return &refusal.Error{}
	}
	return r
}

// missing are the indexes that a refusal names.
func missing(err error) []rebuild.Gap {
	var m *rebuild.MissingError
	if !errors.As(err, &m) {
		return nil
	}
	return m.Missing
}

func TestGaps(t *testing.T) {
	r, dir := small(t)
	first, last := r.points[0].index, r.points[len(r.points)-1].index
	gap := []evidence.Spec{{Where: rewritten(t, dir,
		func(e *raftpb.Entry) bool { return e.Index != first+2 && e.Index != first+3 })}}
	want := []rebuild.Gap{{From: first + 2, To: first + 3}}
	for _, to := range []rebuild.Target{{Index: last}, {Last: true}, {Before: []byte("e")}, {Revision: 7}} {
		got := refused(t, to.String(), rebuild.Options{Logs: gap, To: to}, "missing are the indexes")
		if d := cmp.Diff(want, missing(got)); d != "" {
			t.Errorf("%s: %s", to, d)
		}
	}
	if _, err := run(t, rebuild.Options{Logs: gap, To: rebuild.Target{Index: first + 1}}); err != nil {
		t.Errorf("before the gap: %v", err)
	}
	// The member's own log fills it.
	if res, err := run(t, rebuild.Options{Logs: append(gap, evidence.Spec{Name: "whole", Where: dir}),
		To: rebuild.Target{Last: true}}); err != nil || res.To.Index != last {
		t.Errorf("filled: %+v %v", res, err)
	}
	late := []evidence.Spec{{Where: rewritten(t, dir, func(e *raftpb.Entry) bool { return e.Index > first })}}
	got := refused(t, "no base", rebuild.Options{Logs: late, To: rebuild.Target{Last: true}}, "missing are the indexes")
	if d := cmp.Diff([]rebuild.Gap{{From: 1, To: first}}, missing(got)); d != "" {
		t.Error(d)
	}
}

func TestDamagedLog(t *testing.T) {
	r, dir := small(t)
	at := r.points[2].index
	senseless := []evidence.Spec{{Where: rewritten(t, dir, func(e *raftpb.Entry) bool {
		if e.Index == at {
			e.Data = []byte{0xff, 0xff, 0xff}
		}
		return true
	})}}
	refused(t, "undecodable", rebuild.Options{Logs: senseless, To: rebuild.Target{Last: true}}, "cannot be executed")
	if res, err := run(t, rebuild.Options{Logs: senseless, To: rebuild.Target{Last: true},
		Skip: []uint64{at}}); err != nil || len(res.Skipped) != 1 {
		t.Errorf("%+v %v", res, err)
	}
	torn := evidencetest.Copy(t, dir)
	segs, _ := filepath.Glob(filepath.Join(torn, "member", "wal", "*.wal"))
	b, err := os.ReadFile(segs[0])
	if err != nil {
		t.Fatal(err)
	}
	i := bytes.Index(b, []byte("follows"))
	b[i] ^= 1
	if err := os.WriteFile(segs[0], b, 0o600); err != nil {
		t.Fatal(err)
	}
	got := refused(t, "flipped entry", rebuild.Options{Logs: []evidence.Spec{{Where: torn}},
		To: rebuild.Target{Last: true}}, "missing are the indexes")
	if d := cmp.Diff([]rebuild.Gap{{From: r.points[3].index, To: r.points[3].index}}, missing(got)); d != "" {
		t.Error(d)
	}
	flips(t, dir, r.points[len(r.points)-1])
}

func TestDamagedBase(t *testing.T) {
	r, dir := small(t)
	logs := []evidence.Spec{{Where: dir}}
	base := filepath.Join(t.TempDir(), "base.db")
	if _, err := run(t, rebuild.Options{Logs: logs, To: rebuild.Target{Index: r.points[2].index},
		Out: base}); err != nil {
		t.Fatal(err)
	}
	whole, _ := os.ReadFile(base)
	for name, bytes := range map[string][]byte{"cut": whole[:3*4096],
		"zeroed": append(append([]byte{}, whole[:2*4096]...), make([]byte, len(whole)-2*4096)...)} {
		bad := filepath.Join(t.TempDir(), "bad.db")
		if err := os.WriteFile(bad, bytes, 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := run(t, rebuild.Options{Base: evidence.Spec{Where: bad}, Logs: logs,
			To: rebuild.Target{Last: true}}); err == nil {
			t.Errorf("a %s base is taken", name)
		}
	}
	flipped := filepath.Join(t.TempDir(), "flipped.db")
	whole[len(whole)-1] ^= 1
	if err := os.WriteFile(flipped, whole, 0o600); err != nil {
		t.Fatal(err)
	}
	o := rebuild.Options{Base: evidence.Spec{Where: flipped}, Logs: logs, To: rebuild.Target{Last: true}}
	refused(t, "wrong trailer", o, "sha256 trailer")
	o.SkipHashCheck = true
	o.Out = filepath.Join(t.TempDir(), "unproven.db")
	res, err := run(t, o)
	if err != nil {
		t.Fatal(err)
	}
	if st, err := os.Stat(res.Output); err != nil || st.Size()%512 != 0 || res.SHA256 != "" {
		t.Errorf("a sum certifies content that nothing proves: %v, %v, %q", st.Size(), err, res.SHA256)
	}
	o.Out = ""
	empty := t.TempDir()
	for _, o := range []rebuild.Options{{Logs: []evidence.Spec{{Where: empty}}},
		{Base: evidence.Spec{Where: empty}, Logs: logs}, {Base: evidence.Spec{Where: base}}} {
		o.To = rebuild.Target{Last: true}
		if _, err := run(t, o); err == nil {
			t.Errorf("%+v: no error", o)
		}
	}
}

// flips changes single bits all over a log and cuts it: either that is refused, or the result is what the server held.
func flips(t *testing.T, dir string, last point) {
	t.Helper()
	copied := evidencetest.Copy(t, dir)
	segs, _ := filepath.Glob(filepath.Join(copied, "member", "wal", "*.wal"))
	whole, err := os.ReadFile(segs[0])
	if err != nil {
		t.Fatal(err)
	}
	end := len(bytes.TrimRight(whole, "\x00"))
	whole = whole[:end+64]
	refusals, same := 0, 0
	for i := range 60 {
		b := bytes.Clone(whole)
		if at := i * end / 60; i%6 == 5 {
			b = b[:at&^7]
		} else {
			b[at] ^= 1 << (i % 8)
		}
		if err := os.WriteFile(segs[0], b, 0o600); err != nil {
			t.Fatal(err)
		}
		// The db would prove the same as the log; without it the log stands alone.
		res, err := run(t, rebuild.Options{Logs: []evidence.Spec{{Where: filepath.Dir(segs[0])}},
			To: rebuild.Target{Index: last.index}})
		switch {
		case err != nil:
			refusals++
		case res.HashKV != last.hash || res.To.Revision != last.rev:
			t.Errorf("change %d is taken for good: %+v", i, res)
		default:
			same++
		}
	}
	if refusals == 0 || same == 0 {
		t.Errorf("%d refused, %d the same: the sweep shows nothing", refusals, same)
	}
}

func TestForeignAndMisplaced(t *testing.T) {
	r, dir := small(t)
	_, otherDir := small(t)
	base := filepath.Join(t.TempDir(), "base.db")
	logs := []evidence.Spec{{Where: dir}}
	if _, err := run(t, rebuild.Options{Logs: logs, To: rebuild.Target{Index: r.points[4].index},
		Out: base}); err != nil {
		t.Fatal(err)
	}
	from := evidence.Spec{Where: base}
	last := rebuild.Target{Last: true}
	refused(t, "two clusters", rebuild.Options{Logs: []evidence.Spec{{Name: "a", Where: dir},
		{Name: "b", Where: otherDir}}, To: last}, "cluster")
	refused(t, "foreign log", rebuild.Options{Base: from, Logs: []evidence.Spec{{Where: otherDir}}, To: last},
		"cluster")
	refused(t, "base too new", rebuild.Options{Base: from, Logs: logs, To: rebuild.Target{Index: r.points[1].index}},
		"older base")
	short := []evidence.Spec{{Where: rewritten(t, dir,
		func(e *raftpb.Entry) bool { return e.Index <= r.points[2].index })}}
	refused(t, "logs that end before the base", rebuild.Options{Base: from, Logs: short, To: last},
		"before the base's index")
	refused(t, "revision too old", rebuild.Options{Base: from, Logs: logs, To: rebuild.Target{Revision: 2}},
		"older base")
	refused(t, "skip below the base", rebuild.Options{Base: from, Logs: logs, To: last,
		Skip: []uint64{r.points[1].index}}, "cannot be skipped")
	refused(t, "existing output", rebuild.Options{Base: from, Logs: logs, To: last, DBOut: base}, "exists")
	c, cancel := context.WithCancel(ctx())
	cancel()
	out := filepath.Join(t.TempDir(), "out")
	if _, err := rebuild.Run(c, rebuild.Options{Base: from, Logs: logs, To: last, Out: out}); !errors.Is(err,
		context.Canceled) {
		t.Errorf("interrupted: %v", err)
	}
	if left, _ := filepath.Glob(filepath.Join(filepath.Dir(out), "*")); len(left) > 0 {
		t.Errorf("left %v", left)
	}
}

// TestTwin: a restore gives the same IDs to another history. Then only content tells that base and log do not belong
// together.
func TestTwin(t *testing.T) {
	r := record(t)
	busy(r)
	dir := r.stop()
	base := filepath.Join(t.TempDir(), "base.db")
	if _, err := run(t, rebuild.Options{Logs: []evidence.Spec{{Where: dir}},
		To: rebuild.Target{Index: r.points[11].index}, Out: base}); err != nil {
		t.Fatal(err)
	}
	twin := rewritten(t, dir, func(e *raftpb.Entry) bool {
		e.Data = bytes.ReplaceAll(bytes.ReplaceAll(e.Data, []byte("k0"), []byte("q0")), []byte("k1"), []byte("q1"))
		return true
	})
	refused(t, "twin", rebuild.Options{Base: evidence.Spec{Where: base}, Logs: []evidence.Spec{{Where: twin}},
		To: rebuild.Target{Last: true}}, "do not belong together")
	term := rewritten(t, dir, func(e *raftpb.Entry) bool { e.Term += 5; return true })
	refused(t, "other term", rebuild.Options{Base: evidence.Spec{Where: base}, Logs: []evidence.Spec{{Where: term}},
		To: rebuild.Target{Last: true}}, "different histories")
}

// After the end of the history that most logs hold, the entries of another one do not continue it.
func TestTwoHistories(t *testing.T) {
	r, dir := small(t)
	from, to := r.points[3].index, r.points[5].index
	parted := func() string {
		return rewritten(t, dir, func(e *raftpb.Entry) bool {
			if e.Index >= from {
				e.Term++
			}
			return e.Index <= to
		})
	}
	logs := []evidence.Spec{{Name: "a", Where: dir}, {Name: "b", Where: parted()}, {Name: "c", Where: parted()}}
	refused(t, "two histories", rebuild.Options{Logs: logs, To: rebuild.Target{Last: true}}, fmt.Sprintf(
		"two histories: entry %d does not continue entry %d", to+1, to))
	for name, o := range map[string]rebuild.Options{
		"up to the end of the first": {Logs: logs, To: rebuild.Target{Index: to}},
		"one of them":                {Logs: logs[:1], To: rebuild.Target{Last: true}},
	} {
		o.Out = filepath.Join(t.TempDir(), "out")
		if _, err := run(t, o); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}
