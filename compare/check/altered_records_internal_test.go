package check

import (
	"crypto/sha256"
	"slices"
	"strings"
	"testing"

	"go.etcd.io/etcd/api/v3/mvccpb"

	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/compare/replay"
	"github.com/etcd-medic/etcd-medic/dumpdb"
)

// valuesDB is a database with the records of key k, a tombstone for each empty value.
func valuesDB(t *testing.T, values ...string) *dumpdb.DB {
	t.Helper()
	return fillBucket(t, func(put func(k []byte, kv *mvccpb.KeyValue)) {
		for i, v := range values {
			rev := int64(i + 5)
			kv, k := &mvccpb.KeyValue{Key: []byte("k"), Value: []byte(v), ModRevision: rev, Lease: 3}, revKey(rev, 0)
			if v == "" {
				kv, k = &mvccpb.KeyValue{Key: []byte("k")}, append(k, 't')
			}
			put(k, kv)
		}
	})
}

func putOf(key, value string) *replay.PutSum {
	return &replay.PutSum{Key: key, Lease: 3, Size: len(value), Value: sha256.Sum256([]byte(value))}
}

// TestRecordsRefute: the log was altered whose own database holds what another log puts there, if no database holds
// what it puts itself.
func TestRecordsRefute(t *testing.T) {
	sound, other, third := "the sound value", "the wrong value", "one more value"
	short := []*replay.PutSum{putOf("k", sound), putOf("k", "1234567")}
	two := []*replay.PutSum{putOf("k", sound), putOf("k", other)}
	lease := putOf("k", sound)
	lease.Lease = 4
	for name, c := range map[string]struct {
		puts []*replay.PutSum
		dbs  [][]string // by member; nil is one without a database
		want []int
	}{
		"its own and another":              {two, [][]string{{"", sound}, {sound, "", third}}, []int{1}},
		"its own only":                     {two, [][]string{{third}, {sound}}, []int{1}},
		"without the other database":       {two, [][]string{nil, {sound}}, []int{1}},
		"the other one only":               {two, [][]string{{sound}, {third}}, nil},
		"its own database is not there":    {two, [][]string{{sound}, nil}, nil},
		"each holds its own":               {two, [][]string{{sound}, {other}}, nil},
		"one holds both":                   {two, [][]string{{third}, {sound, other}}, nil},
		"both hold what both logs put":     {two, [][]string{{sound, other}, {sound, other}}, nil},
		"each holds the other":             {two, [][]string{{other}, {sound}}, nil},
		"none holds either":                {two, [][]string{{third}, {third}}, nil},
		"a short value":                    {short, [][]string{{sound}, {sound}}, nil},
		"another key":                      {[]*replay.PutSum{two[0], putOf("l", other)}, [][]string{{sound}, {sound}}, nil},
		"one is no put":                    {[]*replay.PutSum{two[0], nil}, [][]string{{sound}, {sound}}, nil},
		"one version":                      {two[:1], [][]string{{sound}, {sound}}, nil},
		"the sound one with another lease": {[]*replay.PutSum{lease, two[1]}, [][]string{{sound}, {sound}}, nil},
	} {
		in := &Input{}
		d := replay.LogDiff{Index: 9, Puts: c.puts}
		for i, values := range c.dbs {
			m := member([]string{"n1", "n2"}[i])
			if values != nil {
				m.DB = &evidence.DB{Handle: valuesDB(t, values...)}
			}
			in.Members = append(in.Members, m)
			d.Versions = append(d.Versions, []int{i})
		}
		d.Versions = d.Versions[:len(c.puts)]
		if got := in.alteredLogs().recordsRefute([]replay.LogDiff{d}); !slices.Equal(got.odd, c.want) ||
			len(got.records) != len(c.want) {
			t.Errorf("%s: %+v, want %v", name, got, c.want)
		}
		if got := in.alteredLogs().recordsRefute([]replay.LogDiff{d, d}); got.odd != nil {
			t.Errorf("%s, two entries: %v", name, got)
		}
	}
}

// TestRecordsAreReadOnce: what was read of an entry is kept, and databases are read for a few entries only.
func TestRecordsAreReadOnce(t *testing.T) {
	in := &Input{Members: Sources{member("n1"), member("n2")}}
	d := replay.LogDiff{Versions: [][]int{{0}, {1}},
		Puts: []*replay.PutSum{putOf("k", "the sound value"), putOf("k", "the wrong value")}}
	for _, m := range in.Members {
		m.DB = &evidence.DB{Handle: valuesDB(t, "the sound value")}
	}
	for i := range uint64(maxRefuted + 1) {
		d.Index = 9 + i
		got := in.alteredLogs().recordsRefute([]replay.LogDiff{d}).odd
		if want := i < maxRefuted; slices.Equal(got, []int{1}) != want || len(got) > 0 != want {
			t.Errorf("entry %d: %v", i, got)
		}
	}
	in.Members[1].DB = nil
	if d.Index = 9; !slices.Equal(in.alteredLogs().recordsRefute([]replay.LogDiff{d}).odd, []int{1}) {
		t.Error("it is read a second time")
	}
}

// TestBlameByRecords: if nothing else tells which of two logs was altered, the records do. The databases then hold what
// the sound log has, so nothing says that the altered entry was applied.
func TestBlameByRecords(t *testing.T) {
	a := altered{diffs: []replay.LogDiff{{Index: 9, Versions: [][]int{{0}, {1}}, By: map[int]string{0: "put", 1: "put"},
		Puts: []*replay.PutSum{putOf("k", "the sound value"), putOf("k", "the wrong value")}}}}
	ms := Sources{member("n1"), member("n2")}
	in := &Input{Members: ms, Replay: &replay.Result{Members: []*replay.MemberResult{{Member: ms[0]}, {Member: ms[1]}}}}
	for _, m := range in.Members {
		m.DB = &evidence.DB{Handle: valuesDB(t, "the sound value")}
	}
	in.alteredLogs().blame(&a)
	if !slices.Equal(a.odd, []int{1}) || !strings.Contains(a.why, "no database has a record") || a.believes {
		t.Errorf("%v, %q, believes %v", a.odd, a.why, a.believes)
	}
	f := in.alteredLogs().finding(&a)
	if e := f.Evidence[len(f.Evidence)-1]; e.Member != "n2" || string(e.Key) != "k" ||
		e.Field != "record of revision 5.0" || e.Offset == nil || !strings.HasPrefix(e.Observed, "value <len 15 digest ") {
		t.Errorf("%+v", e)
	}
	a.diffs[0].Puts[1], in.refuted = nil, nil
	if in.alteredLogs().blame(&a); !slices.Equal(a.odd, []int{0, 1}) {
		t.Errorf("undecided: %v", a.odd)
	}
}
