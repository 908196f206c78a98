package compare_test

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/etcd-medic/etcd-medic/compare"
	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/dumplog"
)

// everyEntryIsInItsLog holds evidence of an entry against the log of the member that it names: the entry is at that
// offset of that segment. It returns how many were held against a log.
func everyEntryIsInItsLog(t *testing.T, specs []evidence.Spec, r *compare.Report) (held int) {
	t.Helper()
	logs := map[string]map[string]bool{}
	for _, s := range specs {
		logs[s.Name] = entriesOf(t, filepath.Join(s.Where, "member", "wal"))
	}
	for _, f := range r.Findings {
		for _, e := range f.Evidence {
			entry, is := strings.CutPrefix(e.Field, "entry ")
			if !is || !strings.HasSuffix(e.File, ".wal") || e.Offset == nil {
				continue
			}
			held++
			entry, _, _ = strings.Cut(entry, " ")
			at, log := fmt.Sprintf("%s at %s:%d", entry, e.File, *e.Offset), logs[e.Member]
			if log != nil && !log[at] {
				t.Errorf("%s: the log of %s has no entry %s", f.ID, e.Member, at)
			}
		}
	}
	return held
}

// entriesOf lists the entries of a log with their places, nil if there is none.
func entriesOf(t *testing.T, dir string) map[string]bool {
	t.Helper()
	log, err := dumplog.Open(dir)
	if err != nil {
		return nil
	}
	out := map[string]bool{}
	for e, err := range log.Entries(context.Background(), nil) {
		if err == nil {
			out[fmt.Sprintf("%d/%d at %s:%d", e.Term, e.Index, e.Segment, e.Offset)] = true
		}
	}
	return out
}
