package soak

import (
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/etcd-medic/etcd-medic/compare/evidence/evidencetest"
)

// backupFault is a way in which a saved snapshot is damaged. Its sha256 trailer, or the lack of it, shows every one.
type backupFault struct {
	name, what string
	apply      func(file string, size int64, rng *rand.Rand) error
}

var backupFaults = []backupFault{
	{"backup-flipped", "one bit of the backup flipped", func(file string, size int64, rng *rand.Rand) error {
		return flip(file, 2*4096+rng.Int64N(size-2*4096-32))
	}},
	{"backup-truncated", "the backup lacks its end",
		func(file string, size int64, _ *rand.Rand) error { return os.Truncate(file, size/2) }},
	{"backup-trailer", "the sum at the end of the backup altered",
		func(file string, size int64, _ *rand.Rand) error { return flip(file, size-7) }},
}

// backups damages the first backup and judges it alone and next to the members, who must not be accused.
func (r *runner) backups() {
	i := slices.IndexFunc(r.col.Extras, func(s Source) bool { return strings.HasPrefix(s.Name, "backup") })
	if i < 0 {
		return
	}
	for _, f := range backupFaults {
		if !r.cfg.wantsKind(f.name) {
			continue
		}
		src := r.col.Extras[i]
		file := filepath.Join(r.t.TempDir(), "backup.db")
		if err := evidencetest.CopyTo(src.Path, file); err != nil {
			r.t.Fatal(err)
		}
		st, err := os.Stat(file)
		if err == nil {
			err = f.apply(file, st.Size(), Rand(r.col.Setup.Seed, "fault "+f.name))
		}
		if err != nil {
			r.t.Errorf("seed %d: %s: %v", r.col.Setup.Seed, f.name, err)
			continue
		}
		src.Path = file
		truth := Truth{Kind: f.name, What: f.what, Damaged: []string{src.Name},
			Classes: []string{"backup-damaged", "db-damage"}}
		r.judge(f.name, []Source{src}, truth)
		r.judge(f.name, append(slices.Clone(r.col.Members), src), truth)
	}
}
