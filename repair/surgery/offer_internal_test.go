package surgery

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/compare/evidence/clustertest"
)

// TestOffer: proven values of other members are tried only where there are other members, and where the change was to
// make a database without them. What is refused is not offered. An attempt that fails is an error.
func TestOffer(t *testing.T) {
	file := filepath.Join(t.TempDir(), "db")
	clustertest.Synth{Members: 1, Entries: 9, Keys: 2, Value: 10}.WriteDB(t, file)
	none := filepath.Join(t.TempDir(), "none")
	for name, c := range map[string]struct {
		change Change
		peers  []*evidence.Member
		source string
		fails  bool
	}{
		"a log":                  {WAL{}, []*evidence.Member{peer(1)}, none, false},
		"a database before it":   {DB{Previous: true}, []*evidence.Member{peer(1)}, none, false},
		"with proven values":     {DB{Proven: true}, []*evidence.Member{peer(1)}, none, false},
		"no other member":        {DB{}, nil, none, false},
		"a source that is gone":  {DB{}, []*evidence.Member{peer(1)}, none, true},
		"an attempt not allowed": {DB{}, []*evidence.Member{peer(1)}, file, false},
	} {
		w := workOn(5, c.peers...)
		w.o.Source.Where = c.source
		scratch := filepath.Join(t.TempDir(), "scratch")
		if err := os.WriteFile(scratch, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		err := w.offer(t.Context(), c.change, scratch)
		var bad *evidence.SourceError
		if (err != nil) != c.fails || c.fails && !errors.As(err, &bad) || !w.report.Unchanged ||
			len(w.report.Offers) > 0 {
			t.Errorf("%s: %v, offers %q", name, err, w.report.Offers)
		}
	}
}
