package dossier_test

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/etcd-medic/etcd-medic/compare"
	"github.com/etcd-medic/etcd-medic/compare/check"
	"github.com/etcd-medic/etcd-medic/compare/dossier"
	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/compare/evidence/evidencetest"
)

func TestMain(m *testing.M) { evidencetest.Main(m) }

func collect(t *testing.T, name string, o dossier.Options) *dossier.Dossier {
	t.Helper()
	d, err := dossier.Collect(t.Context(), []evidence.Spec{{Where: evidencetest.Incident(t, name)}}, o)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// keys undoes the packing of the keys of a bucket.
func keys(b *dossier.Difference) (out []string) {
	key := ""
	for n := range b.Rest {
		key = key[:b.Shared[n]] + b.Rest[n]
		out = append(out, key)
	}
	return out
}

// TestReportStays: what a dossier adds leaves the report of the diagnosis as it is.
func TestReportStays(t *testing.T) {
	for _, name := range []string{"a-auth-revision-replay", "f-bbolt-page-corruption", "m-healthy-3.6"} {
		dir := evidencetest.Incident(t, name)
		evidencetest.Unchanged(t, dir)
		plain, err := compare.Diagnose(t.Context(), []evidence.Spec{{Where: dir}}, compare.Options{})
		if err != nil {
			t.Fatal(err)
		}
		want, _ := json.Marshal(plain)
		got, _ := json.Marshal(collect(t, name, dossier.Options{}).Report)
		if d := cmp.Diff(string(want), string(got)); d != "" {
			t.Errorf("%s: %s", name, d)
		}
	}
}

// TestDifferences: all rows that differ are there, in order, with every member's version.
func TestDifferences(t *testing.T) {
	d := collect(t, "a-auth-revision-replay", dossier.Options{})
	b := &d.Differences[0]
	list := keys(b)
	if b.Bucket != "key" || b.Differ != 50 || len(list) != 50 || !slices.IsSorted(list) ||
		list[0] != "/app/orders/base/000" {
		t.Fatalf("bucket %s, %d differ: %v", b.Bucket, b.Differ, list)
	}
	if b.Cells[0].Mod[0] != 55 || b.Cells[1].Mod[0] != 67 || b.Cells[2].Mod[0] != 79 || b.Cells[1].SHA[0] != "=" ||
		b.Same[0] != 1 {
		t.Errorf("the first row: %+v", b.Cells)
	}
	n := slices.Index(list, "/app/orders/marker/via-node2-00")
	if n < 0 || b.Cells[0].Mod[n] != 0 || b.Cells[1].Mod[n] == 0 || b.Same[n] != 0 {
		t.Errorf("row %d of a key that node1 lacks: %+v", n, b.Cells[0])
	}
	few := collect(t, "a-auth-revision-replay", dossier.Options{MaxRows: 50, Compare: compare.Options{MaxRows: 3}})
	if got := keys(&few.Differences[0]); !slices.Equal(got, list) {
		t.Errorf("with few rows in the diagnosis the dossier lists %v", got)
	}
	if slices.Contains(d.Equal, "key") || !slices.Contains(d.Equal, "lease") {
		t.Errorf("equal: %v", d.Equal)
	}
}

// TestThen: what is done with a dossier is done while the sources are open, with the whole dossier, and after what the
// diagnosis itself was asked to do; an error of either ends it.
func TestThen(t *testing.T) {
	var order []string
	bad := errors.New("disk full")
	o := dossier.Options{Then: func(_ context.Context, members []*evidence.Member, d *dossier.Dossier) error {
		order = append(order, "then")
		if _, err := members[0].DB.Handle.CurrentRev(); err != nil || d.Report == nil || d.Timeline == nil ||
			len(d.Storage) != len(members) || d.Report.Verdict.Class != "healthy" {
			t.Errorf("%v, %+v", err, d)
		}
		return bad
	}}
	o.Compare.Study = func(context.Context, *check.Input, *compare.Report) error {
		order = append(order, "study")
		return nil
	}
	where := []evidence.Spec{{Where: evidencetest.Incident(t, "m-healthy-3.6")}}
	d, err := dossier.Collect(t.Context(), where, o)
	if d != nil || !errors.Is(err, bad) || !slices.Equal(order, []string{"study", "then"}) {
		t.Errorf("%+v, %v, %v", d, err, order)
	}
	order, o.Compare.Study = nil, func(context.Context, *check.Input, *compare.Report) error { return bad }
	if _, err := dossier.Collect(t.Context(), where, o); !errors.Is(err, bad) || len(order) > 0 {
		t.Errorf("%v, %v", err, order)
	}
}

func revisionOf(d *dossier.Dossier, member string) *int64 {
	for i := range d.Report.Members {
		if m := &d.Report.Members[i]; m.Name == member {
			return m.DB.CurrentRevision
		}
	}
	return new(int64)
}

// TestStorage: the cells of a strip add up to the pages of the file, damage is marked, and prefixes are those of the
// member to keep.
func TestStorage(t *testing.T) {
	d := collect(t, "f-bbolt-page-corruption", dossier.Options{})
	if len(d.Storage) != 3 {
		t.Fatalf("%d members", len(d.Storage))
	}
	for _, s := range d.Storage {
		pages := 0
		for _, c := range s.Cells {
			for _, n := range c {
				pages += n
			}
		}
		if pages+s.Beyond != s.Pages || len(s.Cells) > 720 || len(s.Owner) != len(s.Cells) ||
			len(s.Spans) != len(s.Cells) || s.Beyond < 4000 {
			t.Errorf("%s: %d pages in %d cells, the file has %d", s.Member, pages, len(s.Cells), s.Pages)
		}
		newest := int64(0)
		for _, x := range s.Spans {
			newest = max(newest, x[1])
		}
		if s.Member != "node1" && newest != *revisionOf(d, s.Member) {
			t.Errorf("%s: revisions up to %d in the cells", s.Member, newest)
		}
		if bad := len(s.Damaged) > 0; bad != (s.Member == "node1") {
			t.Errorf("%s: damaged pages %v", s.Member, s.Damaged)
		}
		if kept := s.Member == d.Report.Best.Members[0]; kept != (len(s.Prefixes) > 0) {
			t.Errorf("%s: prefixes %v", s.Member, s.Prefixes)
		}
	}
}

// TestNoValues: with --values asked for or not, a dossier holds none.
func TestNoValues(t *testing.T) {
	d := collect(t, "a-auth-revision-replay", dossier.Options{Compare: compare.Options{Values: true}})
	raw, err := json.Marshal(d)
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(raw), `"bytes":{"text"`) || strings.Contains(string(raw), "$2a$") {
		t.Error("the dossier holds values")
	}
}
