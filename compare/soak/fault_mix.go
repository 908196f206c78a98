package soak

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/etcd-medic/etcd-medic/compare/evidence/evidencetest"
	"github.com/etcd-medic/etcd-medic/release"
)

// mixFaults put files of different moments or members into one data dir.
var mixFaults = []Fault{
	{Name: "mix-db-of-other", Apply: func(f *Victim) (*Effect, error) {
		if len(f.Others) == 0 {
			return nil, errNotHere
		}
		from := f.Others[f.Rng.IntN(len(f.Others))]
		return &Effect{What: "the database of another member", Open: true, MayShareBest: true},
			replace(dbFile(f.Dir), dbFile(from))
	}},
	{Name: "mix-older-db", Apply: func(f *Victim) (*Effect, error) {
		if f.Older == "" {
			return nil, errNotHere
		}
		if err := replace(dbFile(f.Dir), dbFile(f.Older)); err != nil {
			return nil, err
		}
		return olderDB(f, "an older copy of its database"), nil
	}},
	{Name: "mix-backup-as-db", Apply: func(f *Victim) (*Effect, error) {
		if len(f.Backups) == 0 {
			return nil, errNotHere
		}
		if err := replace(dbFile(f.Dir), f.Backups[f.Rng.IntN(len(f.Backups))]); err != nil {
			return nil, err
		}
		return olderDB(f, "a backup as database"), nil
	}},
	{Name: "mix-older-log", Apply: func(f *Victim) (*Effect, error) {
		if f.Older == "" {
			return nil, errNotHere
		}
		wal := filepath.Join("member", "wal")
		if err := replace(filepath.Join(f.Dir, wal), filepath.Join(f.Older, wal)); err != nil {
			return nil, err
		}
		return endAfter(f, "an older copy of its log", mixClasses), nil
	}},
	{Name: "mix-older-dir", Apply: func(f *Victim) (*Effect, error) {
		if f.Older == "" {
			return nil, errNotHere
		}
		return &Effect{What: "the whole dir is an older copy", Open: true, MayShareBest: true, Inconclusive: true},
			replace(f.Dir, f.Older)
	}},
	{Name: "mix-live-copy", Apply: func(f *Victim) (*Effect, error) {
		if f.Live == "" {
			return nil, errNotHere
		}
		if err := replace(f.Dir, f.Live); err != nil {
			return nil, err
		}
		e := endAfter(f, "copied while the server wrote, the log first",
			append([]string{"snapshot-damage"}, logClasses...))
		e.Open = true
		return e, nil
	}},
	{Name: "mix-dir-of-other", Apply: func(f *Victim) (*Effect, error) {
		if len(f.Others) == 0 {
			return nil, errNotHere
		}
		// Alone it is that member's dir and nothing is wrong with it; next to its owner's the same identity is there
		// twice.
		return &Effect{What: "the data dir of another member", Open: true, MayShareBest: true, Inconclusive: true},
			replace(f.Dir, f.Others[f.Rng.IntN(len(f.Others))])
	}},
	{Name: "mix-log-of-other", Apply: func(f *Victim) (*Effect, error) {
		if len(f.Others) == 0 {
			return nil, errNotHere
		}
		wal := filepath.Join("member", "wal")
		from := f.Others[f.Rng.IntN(len(f.Others))]
		// Together with its owner's data dir the same identity exists twice. Alone it is only that member's dir with
		// another database.
		return &Effect{What: "the log of another member", Open: true, MayShareBest: true, Inconclusive: true},
			replace(filepath.Join(f.Dir, wal), filepath.Join(from, wal))
	}},
}

// olderDB is normal as long as the log still has what follows the database; below the newest raft snapshot a server
// refuses to start.
func olderDB(f *Victim, what string) *Effect {
	first, _ := logBounds(f.Dir)
	index, snap := uint64(number(f.Dir, "consistent_index")), newestSnap(f.Dir)
	e := &Effect{What: fmt.Sprintf("%s: it ends at %d, the newest raft snapshot at %d, the log begins at %d", what,
		index, snap, first), Classes: mixClasses, MayShareBest: true}
	e.Alone = release.Of(f.Line).Has(release.IndexWithEveryEntry).Certain() && index < snap && index+1 < first
	e.Open = !e.Alone
	e.MayShareBest = e.Open
	return e
}

// replace puts a copy of from in the place of to.
func replace(to, from string) error {
	if err := os.RemoveAll(to); err != nil {
		return err
	}
	return evidencetest.CopyTo(from, to)
}
