package soak

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"

	bolt "go.etcd.io/bbolt"

	"github.com/etcd-medic/etcd-medic/release"
)

// metaFaults alter bucket meta.
var metaFaults = []Fault{
	{Name: "cindex-one-less", Apply: moveIndex(-1)},
	{Name: "cindex-one-more", Apply: moveIndex(1)},
	{Name: "cindex-few-less", Apply: moveIndex(-7)},
	{Name: "cindex-far-ahead", Apply: moveIndex(1000)},
	{Name: "cindex-missing", Apply: func(f *Victim) (*Effect, error) {
		r, err := metaRow(f, "consistent_index")
		if err != nil {
			return nil, err
		}
		effect := rowEffect(f, "dropped", r, indexClasses)
		effect.Alone = true
		return effect, editDB(f.Dir, r.drop())
	}},
	{Name: "meta-term-ahead", Needs: release.TermInMeta,
		Apply: metaSet("term", func(_ *Victim, v int64) int64 { return v + 5 })},
	{Name: "scheduled-compaction-ahead", Apply: setRevision("scheduledCompactRev",
		func(f *Victim) int64 { ks, _ := readKeyspace(f.Dir); return last0(ks) + 10 })},
	{Name: "finished-compaction-ahead", Apply: setRevision("finishedCompactRev",
		func(f *Victim) int64 { return number(f.Dir, "scheduledCompactRev") + 1 })},
	{Name: "conf-state", Needs: release.TermInMeta, Apply: func(f *Victim) (*Effect, error) {
		r, err := metaRow(f, "confState")
		if err != nil {
			return nil, err
		}
		// The server writes it as JSON.
		if !strings.HasPrefix(r.value, "{") {
			return nil, errNotHere
		}
		other := strings.Replace(r.value, `"voters":[`, `"voters":[77777,`, 1)
		if other == r.value {
			return nil, errNotHere
		}
		// After a restore the row names the members of the cluster before, which no log lists.
		effect := rowEffect(f, "a voter that never was a member", r, append([]string{"db-damage"}, memberClasses...))
		effect.MayShareBest = true // no server reads it
		return effect, editDB(f.Dir, r.put(other))
	}},
	{Name: "storage-version", Needs: release.StorageVersion, Apply: func(f *Victim) (*Effect, error) {
		r, err := metaRow(f, "storageVersion")
		if err != nil {
			return nil, err
		}
		effect := rowEffect(f, "a version that no server accepts", r, memberOr("db-damage"))
		effect.Alone = true
		return effect, editDB(f.Dir, r.put("4.1.0"))
	}},
}

func memberOr(classes ...string) []string { return append(classes, memberClasses...) }

func last0(ks *keyspace) int64 {
	if ks == nil {
		return 0
	}
	return ks.last
}

func metaRow(f *Victim, key string) (row, error) {
	all, err := rows(f.Dir, "meta")
	if err != nil {
		return row{}, err
	}
	for _, r := range all {
		if r.key == key {
			return r, nil
		}
	}
	return row{}, errNotHere
}

func metaSet(key string, to func(*Victim, int64) int64) func(*Victim) (*Effect, error) {
	return func(f *Victim) (*Effect, error) {
		r, err := metaRow(f, key)
		if err != nil {
			return nil, err
		}
		effect := rowEffect(f, "altered", r, indexClasses)
		effect.Alone = true
		return effect, editDB(f.Dir, r.put(be64(to(f, number(f.Dir, key)))))
	}
}

// setRevision writes a revision that contradicts the rest of the database.
func setRevision(key string, to func(*Victim) int64) func(*Victim) (*Effect, error) {
	return func(f *Victim) (*Effect, error) {
		if number(f.Dir, "scheduledCompactRev") == 0 { // a compaction of nothing changes nothing
			return nil, errNotHere
		}
		r := row{"meta", key, ""}
		effect := rowEffect(f, fmt.Sprintf("set to %d", to(f)), r, contentClasses)
		effect.Alone = effect.Alone || key == "finishedCompactRev" // it never is above the scheduled one
		if was := rowValue(f.Dir, r); was != "" {
			effect.Witness = func(dir string) bool { return reaches(dir, to(f)-10) }
		}
		return effect, editDB(f.Dir, r.put(revision(to(f), 0, false)))
	}
}

// moveIndex moves the consistent index. What that means depends on the entries between the two indexes: one that wrote
// a key would be applied twice, or never.
func moveIndex(by int64) func(*Victim) (*Effect, error) {
	return func(f *Victim) (*Effect, error) {
		r, err := metaRow(f, "consistent_index")
		if err != nil {
			return nil, err
		}
		now := number(f.Dir, "consistent_index")
		if now+by < 1 {
			return nil, errNotHere
		}
		segs, err := readLog(f.Dir)
		if err != nil {
			return nil, err
		}
		ks, err := readKeyspace(f.Dir)
		if err != nil {
			return nil, err
		}
		_, list := entries(segs)
		end, writes := int64(0), false
		for i := range list {
			n := int64(list[i].Index)
			end = n
			if n > min(now, now+by) && n <= max(now, now+by) {
				writes = writes || ks.wrote(&list[i])
			}
		}
		effect := &Effect{What: fmt.Sprintf("consistent index %d instead of %d", now+by, now), Classes: indexClasses}
		switch {
		case by > 0:
			// Beyond the log it is impossible; an entry in between would have shown by its effect.
			effect.Alone = now+by > end
		default:
			effect.Alone = writes
		}
		effect.Open = !effect.Alone
		effect.MayShareBest = effect.Open
		return effect, editDB(f.Dir, r.put(be64(now+by)))
	}
}

// pageFaults damage the file of the database.
var pageFaults = []Fault{
	{Name: "page-random", Apply: damagePage(func(page []byte, rng *rand.Rand) {
		for i := range page {
			page[i] = byte(rng.Uint32())
		}
	})},
	{Name: "page-zero", Apply: damagePage(func(page []byte, _ *rand.Rand) { clear(page) })},
	{Name: "page-header", Apply: damagePage(func(page []byte,
		_ *rand.Rand) {
		binary.LittleEndian.PutUint16(page[8:], 0x7f)
	})},
	{Name: "page-count", Apply: damagePage(func(page []byte,
		_ *rand.Rand) {
		binary.LittleEndian.PutUint16(page[10:], 60000)
	})},
	{Name: "db-meta-one", Apply: damageMeta(1)},
	{Name: "db-meta-both", Apply: damageMeta(2)},
	{Name: "db-truncated", Apply: fileFault(func(_ *Victim, file string, _ int64) (string, error) {
		used, err := usedBytes(file)
		if err != nil {
			return "", err
		}
		return "database cut to half", os.Truncate(file, max(4*4096, used/2/4096*4096))
	})},
	{Name: "db-empty", Apply: fileFault(func(_ *Victim, file string, _ int64) (string, error) {
		return "database empty",
			os.Truncate(file, 0)
	})},
	{Name: "db-zero", Apply: fileFault(func(_ *Victim, file string, size int64) (string, error) {
		return "database all zeros", writeSparse(file, nil, size)
	})},
	{Name: "db-missing", Apply: func(f *Victim) (*Effect, error) {
		return &Effect{What: "database missing", Alone: true,
			Classes: append([]string{"member-lost-data"}, pageClasses...), Inconclusive: true}, os.Remove(dbFile(f.Dir))
	}},
}

// usedBytes is the size of the pages that a database uses. The file can be longer, since bbolt lets it grow in steps.
func usedBytes(file string) (n int64, err error) {
	db, err := bolt.Open(file, 0o600, &bolt.Options{ReadOnly: true})
	if err != nil {
		return 0, err
	}
	err = db.View(func(tx *bolt.Tx) error {
		n = tx.Size()
		return nil
	})
	return n, errors.Join(err, db.Close())
}

func damagePage(alter func(page []byte, rng *rand.Rand)) func(*Victim) (*Effect, error) {
	return func(f *Victim) (*Effect, error) {
		offsets, size, err := leafPages(f.Dir, isKeyLeaf)
		if err != nil {
			return nil, err
		}
		if len(offsets) == 0 {
			return nil, errNotHere
		}
		at := offsets[f.Rng.IntN(len(offsets))]
		b, err := os.ReadFile(dbFile(f.Dir))
		if err != nil {
			return nil, err
		}
		page := b[at : at+size]
		alter(page, f.Rng)
		return &Effect{What: fmt.Sprintf("page at %d damaged", at), Alone: true, Classes: pageClasses},
			writeAt(dbFile(f.Dir), at, page)
	}
}

// damageMeta damages one meta page, after which a server uses the other, or both.
func damageMeta(pages int64) func(*Victim) (*Effect, error) {
	return func(f *Victim) (*Effect, error) {
		size := int64(os.Getpagesize())
		if err := viewDB(f.Dir,
			func(tx *bolt.Tx) error { size = int64(tx.DB().Info().PageSize); return nil }); err != nil {
			return nil, err
		}
		from := int64(f.Rng.IntN(2))
		if pages == 2 {
			from = 0
		}
		for i := range pages {
			if err := writeAt(dbFile(f.Dir), (from+i)%2*size+24, []byte("no meta page")); err != nil {
				return nil, err
			}
		}
		return &Effect{What: fmt.Sprintf("%d meta pages damaged, from %d on", pages, from), Alone: true,
			Classes: pageClasses}, nil
	}
}

func fileFault(do func(f *Victim, file string, size int64) (string, error)) func(*Victim) (*Effect, error) {
	return func(f *Victim) (*Effect, error) {
		st, err := os.Stat(dbFile(f.Dir))
		if err != nil {
			return nil, err
		}
		what, err := do(f, dbFile(f.Dir), st.Size())
		return &Effect{What: what, Alone: true, Classes: pageClasses}, err
	}
}
