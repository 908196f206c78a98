package check

import (
	"testing"

	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/dumplog"
)

// TestStartsBelow: without the file of the newest record a server starts from the one before it, where the log
// continues that one and the database has applied up to it.
func TestStartsBelow(t *testing.T) {
	for name, c := range map[string]struct {
		minor   int
		files   []uint64
		applied uint64
		edit    func(*evidence.Member)
		want    bool
	}{
		"the file before":                {minor: 5, files: []uint64{15}, applied: 20, want: true},
		"applied up to it":               {minor: 5, files: []uint64{15}, applied: 15, want: true},
		"applied less":                   {minor: 5, files: []uint64{15}, applied: 14},
		"the file is there":              {minor: 5, files: []uint64{15, 30}, applied: 20},
		"3.7 needs no file":              {minor: 7, files: []uint64{15}, applied: 20},
		"none, and the log has all":      {minor: 5, applied: 20, want: true},
		"none, and the log begins later": {minor: 5, applied: 20, edit: firstAt(2)},
		"a damaged log":                  {minor: 5, files: []uint64{15}, applied: 20, edit: damageLog},
		"the log begins right after it":  {minor: 5, files: []uint64{15}, applied: 20, edit: firstAt(16), want: true},
		"the log begins later than that": {minor: 5, files: []uint64{15}, applied: 20, edit: firstAt(17)},
	} {
		m := withDB(withLog(withSnapDir(t, "n1"), 40), c.applied)
		m.Version.Minor, m.WAL.Summary.FirstIndex = c.minor, 1
		for _, index := range c.files {
			m = addSnap(m, index, nil)
		}
		if c.edit != nil {
			c.edit(m)
		}
		if got := startsBelow(m, 30); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

func damageLog(m *evidence.Member) { m.WAL.Summary.Damage = []*dumplog.DamageError{{}} }

func firstAt(index uint64) func(*evidence.Member) {
	return func(m *evidence.Member) { m.WAL.Summary.FirstIndex = index }
}
