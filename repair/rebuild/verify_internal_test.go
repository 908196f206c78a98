package rebuild

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/compare/evidence/clustertest"
	"github.com/etcd-medic/etcd-medic/compare/replay"
	"github.com/etcd-medic/etcd-medic/dumpdb"
	"github.com/etcd-medic/etcd-medic/dumplog"
	"github.com/etcd-medic/etcd-medic/release"
	"github.com/etcd-medic/etcd-medic/repair/datadir"
)

// madeDB is the database of a cluster of one member after some puts, with edits.
func madeDB(t *testing.T, puts int, edits ...datadir.Edit) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "db")
	clustertest.Synth{Members: 1, Entries: puts, Keys: 4, Value: 10}.WriteDB(t, path)
	if err := datadir.EditNew(path, edits...); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestComparedWithAMember: a result is compared with a member as far as both go and as if both had the same compact
// revision. A small bucket is compared if no entry between them changes it.
func TestComparedWithAMember(t *testing.T) {
	const puts, index = 40, 41 // revision 41
	compacted := func(rev int64) datadir.Edit {
		return datadir.PutBucketKey("meta", []byte("finishedCompactRev"), dumpdb.Rev{Main: rev}.Bytes())
	}
	lease := datadir.PutBucketKey("lease", []byte{0, 0, 0, 0, 0, 0, 0, 9}, []byte{8, 9, 16, 60})
	altered := datadir.PutBucketKey("key", dumpdb.Rev{Main: 9}.Bytes(), []byte("\x0a\x01k\x10\x09\x18\x09\x20\x01"))
	same, differs := "yes yes yes", "no no yes"
	for name, c := range map[string]struct {
		db      string
		base    uint64 // the index of the base, 0 without one
		touches []uint64
		want    string // bucket key, HashKV, bucket lease
		rev     int64
		why     string
	}{
		"the same":          {madeDB(t, puts), 0, nil, same, 41, ""},
		"at the base":       {madeDB(t, puts), index, nil, "", 0, ""},
		"after the base":    {madeDB(t, puts), index - 1, nil, same, 41, ""},
		"ahead":             {madeDB(t, puts+9), 0, nil, same, 41, ""},
		"lagging":           {madeDB(t, puts-9), 0, nil, same, 32, ""},
		"an altered record": {madeDB(t, puts, altered), 0, nil, differs, 41, ""},
		"an altered lease":  {madeDB(t, puts, lease), 0, nil, "yes yes no", 41, ""},
		"a lease since then": {madeDB(t, puts+9, lease), 0, []uint64{index + 1}, "yes yes unknown", 41,
			"entries between 42 and 50 change it"},
		"a lease up to then":   {madeDB(t, puts+9, lease), 0, []uint64{index}, "yes yes no", 41, ""},
		"a lease after it":     {madeDB(t, puts+9), 0, []uint64{index + 10}, same, 41, ""},
		"compacted":            {madeDB(t, puts, compacted(20)), 0, nil, "yes unknown yes", 41, ""},
		"compacted to the end": {madeDB(t, puts, compacted(41)), 0, nil, "yes unknown yes", 41, ""},
		"compacted above": {madeDB(t, puts+9, compacted(42)), 0, nil, "unknown unknown yes", 41,
			"compacted at 42, above revision 41"},
		"altered and compacted": {madeDB(t, puts, altered, compacted(41)), 0, nil, "no unknown yes", 41, ""},
	} {
		set, err := evidence.Open(t.Context(), []evidence.Spec{{Where: c.db}}, evidence.Options{})
		if err != nil {
			t.Fatal(err)
		}
		ours, err := dumpdb.Open(madeDB(t, puts))
		if err != nil {
			t.Fatal(err)
		}
		b := &builder{res: &Result{To: Point{Index: index, Revision: 41, CompactRevision: -1}},
			from: Point{Index: c.base},
			sv:   &survey{touches: map[string][]uint64{"lease": c.touches}}}
		if c.base > 0 {
			b.base = set.Members[0]
		}
		v, err := b.against(t.Context(), ours, set.Members[0])
		if err := errors.Join(err, ours.Close(), set.Close()); err != nil {
			t.Fatal(err)
		}
		if v == nil {
			if c.want != "" {
				t.Errorf("%s: not compared", name)
			}
			continue
		}
		at := slices.IndexFunc(v.Buckets, func(x Bucket) bool { return x.Bucket == "lease" })
		got := fmt.Sprint(word(v.Buckets[0].Equal), " ", word(v.HashKV), " ", word(v.Buckets[at].Equal))
		if got != c.want || v.Revision != c.rev || len(v.Buckets) != 1+len(hashed) || v.Buckets[0].Bucket != "key" ||
			!strings.Contains(v.Buckets[0].Why+v.Buckets[at].Why, c.why) || c.why == "" && v.Buckets[at].Why != "" {
			t.Errorf("%s: %s at revision %d, %+v", name, got, v.Revision, v.Buckets)
		}
	}
}

func word(a release.Answer) string {
	return map[release.Answer]string{release.AnswerOf(true): "yes", release.AnswerOf(false): "no"}[a] +
		map[release.Answer]string{release.Unknown: "unknown"}[a]
}

// TestVerify: members prove the result unless an entry is skipped, and what proves nothing is said.
func TestVerify(t *testing.T) {
	path := madeDB(t, 40)
	set, err := evidence.Open(t.Context(), []evidence.Spec{{Where: path}}, evidence.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = set.Close() }() // only read
	for name, c := range map[string]struct {
		skip     []uint64
		members  []*evidence.Member
		base     *evidence.Member
		verified int
		note     string
	}{
		"a member":         {nil, set.Members, nil, 1, ""},
		"no member":        {nil, nil, nil, 0, "nothing proves the result"},
		"the base alone":   {nil, set.Members, set.Members[0], 0, "nothing proves the result"},
		"a skipped entry":  {[]uint64{7}, set.Members, nil, 0, "the result was not compared with any"},
		"skipped, no base": {[]uint64{7}, nil, nil, 0, "the result was not compared with any"},
	} {
		b := &builder{o: Options{Skip: c.skip}, members: c.members, base: c.base, from: Point{Index: 41},
			res: &Result{To: Point{Index: 41, Revision: 41, CompactRevision: -1}}, sv: &survey{}}
		if err := b.verify(t.Context(), path); err != nil {
			t.Fatal(err)
		}
		notes := strings.Join(b.res.Notes, "\n")
		if len(b.res.Verified) != c.verified || b.res.HashKV == 0 || (notes == "") != (c.note == "") ||
			!strings.Contains(notes, c.note) {
			t.Errorf("%s: %+v", name, b.res)
		}
	}
}

// TestReached: the log has to reach the target, a revision or an entry.
func TestReached(t *testing.T) {
	db, err := dumpdb.Open(madeDB(t, 40)) // revision 41
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = db.Close() }() // only read
	m, err := replay.NewMachine(t.Context(), db, replay.MachineOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		to   Target
		at   uint64
		end  uint64
		want string
	}{
		{Target{Revision: 41}, 30, 50, ""},
		{Target{Revision: 42}, 50, 50, "the committed log ends at entry 50 and revision 41, before revision 42"},
		{Target{}, 50, 50, ""},
		{Target{}, 49, 50, "missing are the indexes 50"},
	} {
		e := &engine{b: &builder{o: Options{To: c.to}, sv: &survey{first: 1, last: 49}, from: Point{Index: 3}}, m: m,
			at: Point{Index: c.at}}
		if err := e.reached(c.end); (err == nil) != (c.want == "") || err != nil &&
			!strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: %v", c, err)
		}
	}
}

// TestLeftOpen: an entry counts as open as long as the one that settles it is not executed. All are counted, and the
// first are listed.
func TestLeftOpen(t *testing.T) {
	e := &engine{b: &builder{res: &Result{}}, at: Point{Index: 20}}
	for _, until := range []uint64{19, 20, 21} {
		e.unsettled = append(e.unsettled, unsettled{EntryLine{Index: until - 10}, until})
	}
	e.leftOpen()
	if r := e.b.res; r.Unsettled != 1 || r.DoubtfulCount != 1 || len(r.Doubtful) != 1 || r.Doubtful[0].Index != 11 ||
		!strings.Contains(r.Doubtful[0].Why, "a later entry of the same effect") {
		t.Errorf("%+v", r)
	}
	for range maxListed {
		e.unsettled = append(e.unsettled, unsettled{EntryLine{Index: 15}, 30})
	}
	e.b.res = &Result{}
	e.leftOpen()
	if r := e.b.res; r.Unsettled != maxListed+1 || r.DoubtfulCount != maxListed+1 || len(r.Doubtful) != maxListed {
		t.Errorf("%d open, %d doubtful, %d listed", r.Unsettled, r.DoubtfulCount, len(r.Doubtful))
	}
}

// TestUndecodable: why an entry cannot be executed.
func TestUndecodable(t *testing.T) {
	for want, x := range map[string]*replay.Entry{
		"broken":                                 {Err: errors.New("broken"), Req: &dumplog.Request{}},
		"a ConfChangeV2, which no etcd executes": {Req: &dumplog.Request{ConfChangeV2: &dumplog.ConfChangeV2{}}},
		"no known request":                       {Req: &dumplog.Request{}},
	} {
		if got := undecodable(x); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	if got := outcome(replay.Refused, replay.ReasonNone); got != replay.Refused.String() {
		t.Error(got)
	}
	if got := outcome(replay.Refused, replay.ReasonPermission); got != replay.Refused.String()+" ("+
		string(replay.ReasonPermission)+")" {
		t.Error(got)
	}
}

// TestTouched: an entry after lo and up to hi may have changed a bucket.
func TestTouched(t *testing.T) {
	s := &survey{touches: map[string][]uint64{"lease": {5, 9}}}
	for _, c := range []struct {
		bucket string
		lo, hi uint64
		want   bool
	}{{"lease", 4, 5, true}, {"lease", 5, 8, false}, {"lease", 5, 9, true}, {"lease", 9, 20, false},
		{"lease", 0, 4, false}, {"alarm", 0, 20, false}} {
		if got := s.touched(c.bucket, c.lo, c.hi); got != c.want {
			t.Errorf("%s in (%d, %d]: %t", c.bucket, c.lo, c.hi, got)
		}
	}
}
