package soak

import (
	"encoding/binary"
	"fmt"
	"slices"
)

// defect judges what servers with a real defect left. Truth is read from the databases: members at the same index whose
// auth revisions or records differ have diverged. Which of them is right is not judged here; scenarios with known
// histories do that.
func (r *runner) defect() {
	kind := r.col.Setup.Shape.Name
	for _, sources := range subsets(r.col.Members, false) {
		t := Truth{Kind: kind, Unprovable: true, AnyBest: true, AnyAccused: true, MayBeInconclusive: true,
			Classes: append([]string{"wal-damage"}, contentClasses...)}
		for _, s := range sources {
			t.Damaged = append(t.Damaged, s.Name)
		}
		if what := diverged(sources); what != "" {
			t.What, t.Unprovable, t.MayBeInconclusive = what, false, false
		}
		r.judge(kind, sources, t)
	}
}

// diverged says how members that have applied as much differ, "" if they do not.
func diverged(sources []Source) string {
	for _, a := range sources {
		for _, b := range sources {
			if a.Name >= b.Name || a.Lags || b.Lags || number(a.Path, "consistent_index") != number(b.Path,
				"consistent_index") {
				continue
			}
			if ra, rb := authRevision(a.Path), authRevision(b.Path); ra != rb {
				return fmt.Sprintf("auth revision %d on %s, %d on %s", ra, a.Name, rb, b.Name)
			}
			ka, errA := readKeyspace(a.Path)
			kb, errB := readKeyspace(b.Path)
			if errA != nil || errB != nil || ka.compact != kb.compact {
				continue
			}
			if !slices.EqualFunc(ka.lasting(), kb.lasting(), func(x, y record) bool { return x.row == y.row }) {
				return fmt.Sprintf("%s and %s hold other records", a.Name, b.Name)
			}
		}
	}
	return ""
}

// lasting are the records that no compaction may have removed.
func (k *keyspace) lasting() []record {
	return k.sel(func(r *record) bool { return r.live || r.main > k.compact })
}

func authRevision(dir string) uint64 {
	v := rowValue(dir, row{bucket: "auth", key: "authRevision"})
	if len(v) < 8 {
		return 0
	}
	return binary.BigEndian.Uint64([]byte(v))
}
