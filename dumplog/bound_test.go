package dumplog_test

import (
	"context"
	"errors"
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
