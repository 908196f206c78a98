package replay

import (
	"bytes"

	"github.com/etcd-medic/etcd-medic/compare/apply"
	"github.com/etcd-medic/etcd-medic/dumplog"
)

// maxLastWrites bounds how many writes of a log are searched in a database.
const maxLastWrites = 64

// LastWrites are the last plain puts of a log whose keys nothing later changed: a database that has executed that much
// of the log has them. IDs and indexes alone do not prove a common history, since a restore with the same flags uses
// them again.
type LastWrites struct {
	puts   []lastWrite
	writes int64 // entries that write keys
}

// lastWrite is a put, with the number of entries up to it that write keys.
type lastWrite struct {
	key string
	sum uint64
	at  int64
}

// Add adds the next entry.
func (w *LastWrites) Add(e *Entry) {
	r := e.Req
	if e.Err != nil || r == nil || !WritesKeys(r.Kind) {
		return
	}
	w.writes++
	kept := w.puts[:0]
	for _, p := range w.puts {
		if r.Kind == dumplog.KindLeaseRevoke || !r.Touches([]byte(p.key), append([]byte(p.key), 0)) {
			kept = append(kept, p)
		}
	}
	w.puts = kept
	if r.Kind != dumplog.KindPut || r.Put.Lease != 0 || keeps(r.Put) {
		return
	}
	if len(w.puts) == maxLastWrites {
		w.puts = append(w.puts[:0], w.puts[1:]...)
	}
	w.puts = append(w.puts, lastWrite{string(bytes.Clone(r.Put.Key)), apply.SumOf(r.Put.Value), w.writes})
}

// LastWritesFound says how many of the last writes of a log a database has.
type LastWritesFound struct {
	// Tried are those that can be compared, Found those of which the database has key and value, InPlace those of them
	// whose revision is also as near to the database's end as the entry is to the log's: an entry writes one revision
	// at most.
	Tried, Found, InPlace int
}

// Find searches the writes in the state of a database.
func (w *LastWrites) Find(m *Machine) (f LastWritesFound) {
	for _, p := range w.puts {
		k := m.s.Keys.Get(p.key)
		if k != nil && k.Lease != 0 {
			continue
		}
		f.Tried++
		if k == nil || k.Sum != p.sum {
			continue
		}
		f.Found++
		if k.Mod >= m.Revision()-(w.writes-p.at) {
			f.InPlace++
		}
	}
	return f
}

// Most reports whether most of the writes are in their place.
func (f LastWritesFound) Most() bool { return 2*f.InPlace > f.Tried }
