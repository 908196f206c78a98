//go:build e2e

package compare_test

import (
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	bolt "go.etcd.io/bbolt"
	"go.etcd.io/etcd/api/v3/mvccpb"

	"github.com/etcd-medic/etcd-medic/compare/evidence/clustertest"
)

// scenarioDamage acts on the collected copies, never on a running member.
var scenarioDamage = map[string]scenarioStep{
	// zerowal NODE blanks one entry in the middle of the last segment, losetail NODE COUNT the last records.
	"zerowal":  (*scenario).zeroWAL,
	"losetail": (*scenario).loseTail,
	// putdb NODE: the database that keepdb has set aside.
	"putdb": (*scenario).putDB,
	// torn NODE HOW: the last record of the last segment is cut off in the middle (cut), zeroed from a sector on (zero)
	// or from a byte on (byte), or holds other bytes (noise); middle zeroes the log from a sector in its middle on.
	"torn": (*scenario).tornTail,
	// flip NODE KEY: one bit of the newest value of KEY.
	"flip": (*scenario).flipValue,
	// randompage NODE: one leaf page of bucket key becomes noise.
	"randompage": (*scenario).randomPage,
	// droprev NODE KEY removes the newest record of KEY, rekey NODE KEY gives it another key.
	"droprev": func(s *scenario, args []string) {
		s.editRecord(args[0], args[1], func(*mvccpb.KeyValue) bool { return false })
	},
	"rekey": func(s *scenario, args []string) {
		s.editRecord(args[0], args[1], func(kv *mvccpb.KeyValue) bool { kv.Key[len(kv.Key)-1] ^= 1; return true })
	},
	// zeropage NODE blanks a leaf page of bucket key, badmeta NODE 0|1|both meta pages, truncatedb NODE cuts the db in
	// half.
	"zeropage": func(s *scenario, args []string) { s.overwritePage(args[0], func([]byte) {}) },
	"badmeta": func(s *scenario, args []string) {
		for page := range int64(2) {
			if args[1] == "both" || args[1] == fmt.Sprint(page) {
				s.writeAt(s.dbFile(args[0]), page*4096+20, []byte("damaged meta page"))
			}
		}
	},
	"truncatedb": func(s *scenario, args []string) { s.must(os.Truncate(s.dbFile(args[0]), 5*4096+100)) },
	// flipwal NODE changes a bit in the middle of the log.
	"flipwal": func(s *scenario, args []string) {
		segs, err := filepath.Glob(filepath.Join(s.dirs[args[0]], "member", "wal", "*.wal"))
		s.must(err)
		at := s.frames(segs[0])
		k := len(at) / 2
		for at[k+1]-at[k] < 64 {
			k++
		}
		s.flipIn(segs[0], at[k]+40)
	},
	// flipbackup changes one bit in a value of the backup; truncatebackup cuts it.
	"flipbackup":     func(s *scenario, _ []string) { s.flipIn(s.backup, s.backupValue()) },
	"truncatebackup": func(s *scenario, args []string) { s.truncate(s.backup, s.number(args, 0, 8192)) },
	// onlydb NODE drops the log and snapshots from the copy, droplog the log alone.
	"droplog": func(s *scenario, args []string) {
		s.must(os.RemoveAll(filepath.Join(s.dirs[args[0]], "member", "wal")))
	},
	// forget NODE leaves a member out of the diagnosis.
	"forget": func(s *scenario, args []string) {
		for _, a := range args {
			delete(s.dirs, a)
		}
	},
	// swap NODE gives the running cluster the copy of that member, so that it goes on with the damage.
	"swap": func(s *scenario, args []string) {
		i := s.node(args[0])
		s.c.Wipe(i)
		s.must(os.Rename(s.dirs[args[0]], s.c.DataDir(i)))
		delete(s.dirs, args[0])
	},
}

func (s *scenario) truncate(file string, by int) {
	st, err := os.Stat(file)
	s.must(err)
	s.must(os.Truncate(file, st.Size()-int64(by)))
}

// frames returns the offsets of all records of a WAL segment and the end of the last.
func (s *scenario) frames(segment string) []int64 {
	b, err := os.ReadFile(segment)
	s.must(err)
	return clustertest.RecordOffsets(b)
}

func (s *scenario) tornTail(args []string) {
	segs, err := filepath.Glob(filepath.Join(s.dirs[args[0]], "member", "wal", "*.wal"))
	s.must(err)
	slices.Sort(segs)
	last := segs[len(segs)-1]
	at := s.frames(last)
	// Damage the last record that is large enough to be an entry, and all behind it.
	end, k := at[len(at)-1], len(at)-2
	for at[k+1]-at[k] < 64 {
		k--
	}
	from := at[k] + 24
	switch args[1] {
	case "cut":
		s.must(os.Truncate(last, from))
		return
	case "zero":
		from = (at[k]/512 + 1) * 512
		if from >= at[k+1] {
			s.Fatalf("%s: the record %d..%d crosses no sector", s.line, at[k], at[k+1])
		}
	case "middle":
		for from = (at[len(at)*2/3]/512 + 1) * 512; slices.Contains(at, from); {
			from += 512 // between two records nothing would be torn
		}
	}
	other := make([]byte, end-from)
	if args[1] == "noise" {
		for i := range other {
			other[i] = byte(s.rand.Uint32())
		}
	}
	f, err := os.OpenFile(last, os.O_WRONLY, 0)
	s.must(err)
	_, err = f.WriteAt(other, from)
	s.must(err)
	s.must(f.Close())
}

func (s *scenario) dbFile(node string) string {
	return filepath.Join(s.dirs[node], "member", "snap", "db")
}

func (s *scenario) openDB(node string) *bolt.DB {
	db, err := bolt.Open(s.dbFile(node), 0o600, &bolt.Options{NoFreelistSync: true})
	s.must(err)
	return db
}

func (s *scenario) flipValue(args []string) {
	s.editRecord(args[0], args[1], func(kv *mvccpb.KeyValue) bool { kv.Value[len(kv.Value)/2] ^= 1; return true })
}

// editRecord changes the newest record of a key that has a value, or removes it when edit returns false.
func (s *scenario) editRecord(node, key string, edit func(*mvccpb.KeyValue) bool) {
	db := s.openDB(node)
	s.must(db.Update(func(tx *bolt.Tx) error {
		b := tx.Bucket([]byte("key"))
		var rev, val []byte
		err := b.ForEach(func(k, v []byte) error {
			var kv mvccpb.KeyValue
			if err := kv.Unmarshal(v); err != nil {
				return err
			}
			if string(kv.Key) == key && len(kv.Value) > 0 {
				rev, val = slices.Clone(k), slices.Clone(v)
			}
			return nil
		})
		if err != nil || rev == nil {
			return fmt.Errorf("no revision of %s (%v)", key, err)
		}
		var kv mvccpb.KeyValue
		if err := kv.Unmarshal(val); err != nil {
			return err
		}
		if !edit(&kv) {
			return b.Delete(rev)
		}
		if val, err = kv.Marshal(); err != nil {
			return err
		}
		return b.Put(rev, val)
	}))
	s.must(db.Close())
}

func (s *scenario) randomPage(args []string) {
	s.overwritePage(args[0], func(page []byte) {
		for i := range page {
			page[i] = byte(s.rand.Uint32())
		}
	})
}

// overwritePage replaces a leaf page of bucket key by zeros that fill changes.
func (s *scenario) overwritePage(node string, fill func(page []byte)) {
	db := s.openDB(node)
	path, size := db.Path(), int64(db.Info().PageSize)
	var page int64
	s.must(db.View(func(tx *bolt.Tx) error {
		seen := 0
		for id := 2; ; id++ {
			p, err := tx.Page(id)
			if err != nil || p == nil {
				break
			}
			if p.Type == "leaf" && s.isKeyLeaf(path, int64(id)*size) {
				if seen++; page == 0 || seen <= 2 {
					page = int64(id)
				}
			}
			id += p.OverflowCount
		}
		return nil
	}))
	s.must(db.Close())
	if page == 0 {
		s.Fatalf("%s: no leaf page of bucket key", s.line)
	}
	noise := make([]byte, size)
	fill(noise)
	s.writeAt(path, page*size, noise)
}

// isKeyLeaf tells whether the page at that offset holds revisions.
func (s *scenario) isKeyLeaf(file string, offset int64) bool {
	f, err := os.Open(file)
	s.must(err)
	defer func() { _ = f.Close() }()
	head := make([]byte, 32)
	_, err = f.ReadAt(head, offset)
	s.must(err)
	pos, ksize := int64(binary.LittleEndian.Uint32(head[20:])), binary.LittleEndian.Uint32(head[24:])
	if ksize != 17 && ksize != 18 {
		return false
	}
	key := make([]byte, ksize)
	_, err = f.ReadAt(key, offset+16+pos)
	s.must(err)
	return key[8] == '_'
}

func (s *scenario) writeAt(file string, offset int64, b []byte) {
	f, err := os.OpenFile(file, os.O_WRONLY, 0)
	s.must(err)
	_, err = f.WriteAt(b, offset)
	s.must(err)
	s.must(f.Close())
}

func (s *scenario) flipIn(file string, offset int64) {
	b := make([]byte, 1)
	f, err := os.Open(file)
	s.must(err)
	_, err = f.ReadAt(b, offset)
	s.must(err)
	s.must(f.Close())
	b[0] ^= 8
	s.writeAt(file, offset, b)
}

// backupValue is the offset of a byte inside some live value of the backup.
func (s *scenario) backupValue() int64 {
	b, err := os.ReadFile(s.backup)
	s.must(err)
	for at := 2 * 4096; at+8 < len(b); at++ {
		if string(b[at:at+6]) == "value " {
			return int64(at)
		}
	}
	s.Fatalf("%s: no value in the backup", s.line)
	return 0
}
