package plan_test

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"go.etcd.io/bbolt"

	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/compare/evidence/casetest"
	"github.com/etcd-medic/etcd-medic/compare/evidence/clustertest"
	"github.com/etcd-medic/etcd-medic/compare/evidence/evidencetest"
	"github.com/etcd-medic/etcd-medic/refusal"
	"github.com/etcd-medic/etcd-medic/repair/plan"
)

// trials stands for the copies on which repairs are tried: a test says what comes out of each.
type trials struct {
	room    error
	mend    func(j *plan.MendJob) (dir string, err error)
	rebuild func(j *plan.RebuildJob) (*plan.RebuiltFile, error)
	// mends and bases are what was tried, in order; closed counts the places that were removed, need is the room that
	// was asked for.
	mends, bases []string
	closed       int
	need         int64
}

func (x *trials) scratch() (plan.Trials, error) { return x, nil }

func (x *trials) Room(need int64) error {
	x.need = need
	return x.room
}

func (x *trials) Close() { x.closed++ }

func (x *trials) Mend(_ context.Context, j plan.MendJob, look func(dir string)) ([]string, error) {
	tried := j.Source.Name + ": " + strings.Join(j.Repairs, " ")
	for _, p := range j.Peers {
		tried += " with " + p.Name
	}
	if j.Base.Name != "" {
		tried += " on " + j.Base.Name
	}
	x.mends = append(x.mends, tried)
	if x.mend == nil {
		return nil, refusal.New("", "nothing mends it")
	}
	dir, err := x.mend(&j)
	if err == nil {
		look(dir)
	}
	return []string{"this", "that"}, err
}

func (x *trials) Rebuild(_ context.Context, j plan.RebuildJob, look func(f *plan.RebuiltFile) error) error {
	x.bases = append(x.bases, j.Base.Name)
	if x.rebuild == nil {
		return errors.New("no log reaches back to the first entry")
	}
	f, err := x.rebuild(&j)
	if err != nil {
		return err
	}
	return look(f)
}

// voters are the members of the clusters of these tests.
var voters = []uint64{0xa1, 0xa2, 0xa3}

// history is what one member of a cluster has: entries up to last, of which entry odd puts another value, and a
// HardState that knows entries up to commit.
type history struct{ last, commit, odd uint64 }

// memberDir writes the data dir of a member, from 0.
func memberDir(t *testing.T, i int, x history) string {
	t.Helper()
	h := clustertest.NewHand(t, t.TempDir(), fmt.Sprintf("node%d", i+1), voters[i], 0xc1)
	h.Found(false, voters...)
	h.Request(2, 4, nil)
	for n := uint64(5); n <= x.last; n++ {
		value := "v"
		if n == x.odd {
			value = "w"
		}
		h.Put(2, n, clustertest.RequestID(0xa1, 1763000000000, n), fmt.Sprintf("k%d", n), value, true)
	}
	h.State(2, 0xa1, max(x.last, x.commit))
	for _, m := range voters {
		h.Member(m, false, true)
	}
	return h.Close(x.last, 2)
}

// cluster writes three members that hold entries up to these.
func cluster(t *testing.T, last ...uint64) (specs []evidence.Spec) {
	t.Helper()
	for i, n := range last {
		specs = append(specs, evidence.Spec{Name: fmt.Sprintf("node%d", i+1), Where: memberDir(t, i, history{last: n})})
	}
	return specs
}

func dbOf(dir string) string { return filepath.Join(dir, "member", "snap", "db") }

// blank overwrites the databases of data dirs with zeros.
func blank(t *testing.T, specs ...evidence.Spec) {
	t.Helper()
	for _, s := range specs {
		if err := os.WriteFile(dbOf(s.Where), make([]byte, 64<<10), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// TestMendsThatWork: a repair is offered only if its result is sound by itself and with the other members, and a server
// starts on it. Else the plan says why it is not.
func TestMendsThatWork(t *testing.T) {
	specs := cluster(t, 20, 20, 20)
	sound := evidencetest.Copy(t, specs[0].Where)
	blank(t, specs[0])
	noLog := evidencetest.Copy(t, sound)
	if err := os.RemoveAll(filepath.Join(noLog, "member", "wal")); err != nil {
		t.Fatal(err)
	}
	otherTerm := evidencetest.Copy(t, sound)
	casetest.EditDB(t, otherTerm, func(tx *bbolt.Tx) error { // a term that the log does not have at that entry
		return tx.Bucket([]byte("meta")).Put([]byte("term"), binary.BigEndian.AppendUint64(nil, 7))
	})
	for name, tc := range map[string]struct {
		result string
		fails  error
		why    string
	}{
		"sound":           {result: sound},
		"against its log": {result: otherTerm, why: "the result is still damaged: node1: "},
		"still damaged":   {result: specs[0].Where, why: "the result is still damaged: node1: "},
		"another history": {result: memberDir(t, 0, history{last: 20, odd: 12}), why: "compared with the other members the result is not sound: "},
		"another member":  {result: specs[1].Where, why: "the result is data of member a2, not of a1"},
		"no log":          {result: noLog, why: "a server does not start on the result, or must not: it has no log"},
		"nothing":         {result: filepath.Join(t.TempDir(), "nothing"), why: "no such file or directory"},
		"a refusal":       {fails: refusal.New("see the other ways", "it gives up entry 20"), why: "it gives up entry 20"},
		"a failure":       {fails: errors.New("disk quota exceeded"), why: "disk quota exceeded"},
	} {
		t.Run(name, func(t *testing.T) {
			x := &trials{mend: func(*plan.MendJob) (string, error) { return tc.result, tc.fails }}
			p, err := plan.New(t.Context(), specs, x.scratch, plan.Options{})
			if err != nil {
				t.Fatal(err)
			}
			if len(p.Mends) != 1 || x.closed != 1 {
				t.Fatalf("mends %+v, %d places removed", p.Mends, x.closed)
			}
			m, w := &p.Mends[0], p.Way(plan.MendFiles)
			if tc.why != "" {
				if m.Works || !strings.Contains(m.Why, tc.why) || m.Promise != nil || w != nil ||
					p.MendOf("node1") != nil {
					t.Errorf("%+v, the way is %+v; want that it does not work: %q", m, w, tc.why)
				}
				return
			}
			if !m.Works || m.Why != "this; that" || !slices.Equal(m.Repairs, []string{plan.MendDB}) || w == nil ||
				!w.Possible {
				t.Fatalf("%+v, the way is %+v", m, w)
			}
			if got := *m.Promise; got.AppliedIndex != 20 || got.LastIndex != 20 || got.Revision != 17 ||
				got.HashKV == 0 || got.HashKV != p.Best.HashKV {
				t.Errorf("it promises %+v, the best member has %+v", got, p.Best)
			}
			if p.Mode != plan.Live || !strings.HasPrefix(w.Why, "the files of node1 can be mended without giving anything "+
				"up, as was tried on a copy") {
				t.Errorf("mode %s, mend: %s", p.Mode, w.Why)
			}
		})
	}
}

// TestMendsTried: the member's own files come first, then the backups among the sources, then other members.
func TestMendsTried(t *testing.T) {
	specs := cluster(t, 20, 20, 20)
	sound := evidencetest.Copy(t, specs[0].Where)
	blank(t, specs[0])
	backup := evidence.Spec{Name: "backup", Where: filepath.Join(t.TempDir(), "backup.db")}
	b, err := os.ReadFile(dbOf(specs[1].Where))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(backup.Where, b, 0o600); err != nil {
		t.Fatal(err)
	}
	const own, based = "node1: db", "node1: db on backup"
	with, both := "node1: db with node2 with node3", "node1: db with node2 with node3 on backup"
	for name, tc := range map[string]struct {
		backup bool
		works  string
		tried  []string
	}{
		"own files":             {false, own, []string{own}},
		"others":                {false, with, []string{own, with}},
		"nothing":               {false, "", []string{own, with}},
		"a backup":              {true, based, []string{own, based}},
		"others, with a backup": {true, with, []string{own, based, with}},
		"all of them":           {true, both, []string{own, based, with, both}},
		"nothing of all":        {true, "", []string{own, based, with, both}},
	} {
		t.Run(name, func(t *testing.T) {
			specs, x := slices.Clone(specs), &trials{}
			if tc.backup {
				specs = append(specs, backup)
			}
			x.mend = func(*plan.MendJob) (string, error) {
				if tried := x.mends[len(x.mends)-1]; tried != tc.works {
					return "", fmt.Errorf("attempt %d", len(x.mends))
				}
				return sound, nil
			}
			p, err := plan.New(t.Context(), specs, x.scratch, plan.Options{})
			if err != nil {
				t.Fatal(err)
			}
			if !slices.Equal(x.mends, tc.tried) {
				t.Errorf("tried %q, want %q", x.mends, tc.tried)
			}
			m := &p.Mends[0]
			if tc.works == "" {
				if m.Works || m.Why != "attempt 1" || len(m.With) > 0 || m.Base != "" {
					t.Errorf("%+v, want the reason why its own files do not suffice", m)
				}
				return
			}
			got := "node1: " + strings.Join(m.Repairs, " ")
			for _, w := range m.With {
				got += " with " + w
			}
			if m.Base != "" {
				got += " on " + m.Base
			}
			if !m.Works || got != tc.works {
				t.Errorf("%+v, want %q", m, tc.works)
			}
			wantMendStep(t, p, m)
		})
	}
}

// wantMendStep checks that the step names what is copied from, and that the commands for people do.
func wantMendStep(t *testing.T, p *plan.Plan, m *plan.Mend) {
	t.Helper()
	want := "mend the database of node1 from its own files"
	if m.Base != "" {
		want += " and backup"
	}
	if len(m.With) > 0 {
		want += " with node2, node3"
	}
	s := p.Way(plan.MendFiles).Steps[0]
	const done = "OUT/node1 is complete; its log ends with entry 20, its database is at revision 17"
	if s.Title != want || s.Done != done {
		t.Errorf("step %q, done when %q; want %q", s.Title, s.Done, want)
	}
	i := slices.IndexFunc(s.ByHand, func(c plan.Command) bool { return strings.Contains(c.Run, "repair db --rebuild") })
	if run := s.ByHand[i].Run; strings.Contains(run, "--base COPY_OF_BACKUP") != (m.Base != "") ||
		strings.Contains(run, "--with COPY_OF_NODE2 --with COPY_OF_NODE3") != (len(m.With) > 0) {
		t.Errorf("by hand %q, want base %q, with %q", run, m.Base, m.With)
	}
}

// TestMendsNotTried: nothing is tried on sound members, on sources that are no data dirs, or without room.
func TestMendsNotTried(t *testing.T) {
	specs := cluster(t, 20, 20, 20)
	blank(t, specs[0])
	x := &trials{room: errors.New("1 GiB is missing")}
	p, err := plan.New(t.Context(), specs, x.scratch, plan.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if len(p.Mends) != 1 || p.Mends[0].Works || p.Mends[0].Why != "not tried: 1 GiB is missing" || len(x.mends) > 0 {
		t.Errorf("mends %+v, tried %q", p.Mends, x.mends)
	}
	bytes := int64(0)
	for _, s := range p.Sources {
		if s.Name == "node1" {
			bytes = s.Bytes
		}
	}
	if x.need != 2*bytes || bytes == 0 { // the copy, and what one repair makes of it
		t.Errorf("asked for %d bytes, node1 has %d", x.need, bytes)
	}
	// The log alone of a member whose log is damaged.
	specs = cluster(t, 20, 20, 20)
	wal := filepath.Join(specs[2].Where, "member", "wal")
	segments, err := filepath.Glob(filepath.Join(wal, "*.wal"))
	if err != nil {
		t.Fatal(err)
	}
	flipAt(t, segments[0], 600)
	x = &trials{}
	specs[2].Where = wal
	p, err = plan.New(t.Context(), specs, x.scratch, plan.Options{Replace: []string{"node2"}, Best: "node1",
		Gone: []string{"node3"}})
	if err != nil {
		t.Fatal(err)
	}
	if len(p.Mends) > 0 || len(x.mends) > 0 || x.closed > 0 {
		t.Errorf("mends %+v, tried %q", p.Mends, x.mends)
	}
}

func flipAt(t *testing.T, file string, at int) {
	t.Helper()
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	b[at] ^= 0x10
	if err := os.WriteFile(file, b, 0o600); err != nil {
		t.Fatal(err)
	}
}

// TestMendedRows: a member list that is still wrong after the repair is no repair.
func TestMendedRows(t *testing.T) {
	sound := evidencetest.Incident(t, "m-healthy-3.6")
	dir := evidencetest.Copy(t, sound)
	var specs []evidence.Spec
	for _, n := range []string{"node1", "node2", "node4"} {
		casetest.EditDB(t, filepath.Join(dir, n), func(tx *bbolt.Tx) error {
			return tx.Bucket([]byte("members")).Put([]byte("00000000000000b9"),
				[]byte(`{"id":185,"peerURLs":["http://127.9.9.9:2380"],"name":"old"}`))
		})
		specs = append(specs, evidence.Spec{Name: n, Where: filepath.Join(dir, n)})
	}
	for from, works := range map[string]bool{sound: true, dir: false} {
		x := &trials{mend: func(j *plan.MendJob) (string, error) { return filepath.Join(from, j.Source.Name), nil }}
		p, err := plan.New(t.Context(), specs, x.scratch, plan.Options{})
		if err != nil {
			t.Fatal(err)
		}
		if len(p.Mends) != 3 {
			t.Fatalf("mends %+v", p.Mends)
		}
		for _, m := range p.Mends {
			if m.Works != works || !slices.Equal(m.Repairs, []string{plan.MendMeta}) ||
				strings.HasPrefix(m.Why, "the result is still wrong: ") == works {
				t.Errorf("%+v, want that it works: %v", m, works)
			}
		}
		if !works {
			if p.Mode != plan.Clone {
				t.Errorf("mode %s: %s", p.Mode, p.Why)
			}
			continue
		}
		wantActions(t, p, map[string]plan.Action{"node1": plan.MendIt, "node2": plan.MendIt, "node4": plan.MendIt,
			"b9": plan.Remove})
		if p.Mode != plan.MendFiles || !strings.HasSuffix(p.Why, "; bucket members can be mended on each of them, without "+
			"giving anything up") || !strings.HasPrefix(p.Member("node2").Why, "bucket members lists members that raft's") {
			t.Errorf("mode %s: %s, node2: %s", p.Mode, p.Why, p.Member("node2").Why)
		}
	}
}
