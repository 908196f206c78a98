package dumplog_test

import (
	"context"
	"errors"
	"maps"
	"path/filepath"
	"testing"

	"github.com/etcd-medic/etcd-medic/dumplog"
)

// TestBoundOfMarks: a log that shows more than fits into a summary is refused as such, however its segments are read,
// and one that just fits is read.
func TestBoundOfMarks(t *testing.T) {
	wal := filepath.Join(nodesWith(t, "a-auth-revision-replay")[0], "member", "wal")
	l, err := dumplog.Open(wal)
	must(t, err)
	fits := 0
	for max := 1; max < 1000 && fits == 0; max++ {
		l.Bound(max)
		_, err := l.Scan(context.Background())
		var many *dumplog.TooManyMarksError
		switch {
		case err == nil:
			fits = max
		case !errors.As(err, &many) || many.Max != max:
			t.Fatalf("%d marks: %v", max, err)
		}
	}
	if fits < 3 {
		t.Fatalf("the log fits into %d marks", fits)
	}
	s, err := l.Scan(context.Background())
	must(t, err)
	if len(s.Terms) > fits {
		t.Errorf("%d terms in %d marks", len(s.Terms), fits)
	}
}

// TestListingWithoutMarks: where that is asked for, a log of too many marks is read without them: its records, its
// damage and the entries that its files begin and end with are known, and the summary says so.
func TestListingWithoutMarks(t *testing.T) {
	wal := filepath.Join(nodesWith(t, "a-auth-revision-replay")[0], "member", "wal")
	l, err := dumplog.Open(wal)
	must(t, err)
	full, err := l.Scan(t.Context())
	must(t, err)
	l.Bound(1)
	l.GoWithoutMarks()
	s, err := l.Scan(t.Context())
	must(t, err)
	if !s.Unmarked || full.Unmarked || len(s.Terms)+len(s.Snapshots)+len(s.Overwrites)+len(s.Jumps) > 0 {
		t.Errorf("%+v", s)
	}
	if s.FirstIndex != full.FirstIndex || s.LastIndex != full.LastIndex || s.LastTerm != full.LastTerm ||
		s.MaxCommit != full.MaxCommit || !maps.Equal(s.Records, full.Records) {
		t.Errorf("%+v, want %+v", s, full)
	}
	if len(s.Damage) != len(full.Damage)+1 || s.Damage[0].Kind != dumplog.DamageMarks {
		t.Errorf("%v", s.Damage)
	}
	n := 0
	for _, err := range l.Entries(t.Context(), s) {
		if err == nil {
			n++
		}
	}
	if n != s.Records[dumplog.RecordEntry] {
		t.Errorf("%d entries of %d", n, s.Records[dumplog.RecordEntry])
	}
}
