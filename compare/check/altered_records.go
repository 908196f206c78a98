package check

import (
	"crypto/sha256"
	"fmt"

	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/compare/replay"
	"github.com/etcd-medic/etcd-medic/shell"
)

// leastTelling is the length from which on a value is not taken for another one with a few bits changed, in bytes.
const leastTelling = 8

// maxRefuted bounds the entries for which databases are read, each from the beginning to the end.
const maxRefuted = 8

// refutation is which logs records refute: the positions of the members, and the records.
type refutation struct {
	odd     []int
	records []Evidence
}

// recordsRefute finds the members whose database holds a record of what the entry in another log puts, at whatever
// revision, and none of what the entry in their own log puts, which no other database holds either. It decides where
// the replay cannot, below the compact revision: what is left there was written by one of the two.
func (in alteredLogs) recordsRefute(diffs []replay.LogDiff) refutation {
	if len(diffs) != 1 || !comparablePuts(diffs[0].Puts) {
		return refutation{}
	}
	d := diffs[0]
	known, ok := in.refuted[d.Index]
	if ok || len(in.refuted) >= maxRefuted {
		return known
	}
	if in.refuted == nil {
		in.refuted = map[uint64]refutation{}
	}
	out := in.refutedBy(&d)
	in.refuted[d.Index] = out
	return out
}

func (in alteredLogs) refutedBy(d *replay.LogDiff) (out refutation) {
	shown := make([]map[int]Evidence, len(d.Puts)) // by version: the first record of it that a member's database holds
	for v := range d.Puts {
		shown[v] = map[int]Evidence{}
	}
	for i, m := range in.Members {
		if m.HasDB() && !in.recordsOf(m, d.Puts, func(v int, e Evidence) {
			if _, ok := shown[v][i]; !ok {
				shown[v][i] = e
			}
		}) {
			return out
		}
	}
	for v, holders := range d.Versions {
		if len(shown[v]) > 0 {
			continue
		}
		n := len(out.records)
		for _, other := range shown {
			for _, i := range holders {
				if e, ok := other[i]; ok {
					out.records = append(out.records, e)
				}
			}
		}
		if len(out.records) > n {
			out.odd = append(out.odd, holders...)
		}
	}
	return out
}

// comparablePuts reports whether all versions are puts of one key with values long enough to tell them apart.
func comparablePuts(puts []*replay.PutSum) bool {
	for _, p := range puts {
		if p == nil || p.Key != puts[0].Key || p.Size < leastTelling {
			return false
		}
	}
	return len(puts) > 1
}

// recordsOf reads the records of the key and calls found for each put that one fits. It is false if not all could be
// read.
func (in alteredLogs) recordsOf(m *evidence.Member, puts []*replay.PutSum, found func(version int, e Evidence)) bool {
	for r, err := range m.DB.Handle.History(in.Context(), []byte(puts[0].Key)) {
		if err != nil || r.Err != nil {
			return false
		}
		if r.Tombstone {
			continue
		}
		for v, p := range puts {
			if r.KV.Lease == p.Lease && len(r.KV.Value) == p.Size && sha256.Sum256(r.KV.Value) == p.Value {
				e := Evidence{Member: m.Label(), File: m.DB.File, Page: Uint64(r.Page), Offset: Int64(r.Offset),
					Bucket: "key", Key: Bytes(p.Key), Field: fmt.Sprintf("record of revision %v", r.Rev),
					Observed: fmt.Sprintf("value <len %d digest %s>", p.Size, m.Digest(r.KV.Value)),
					Expected: "the value that its own log puts", Show: showDB(m, "key")}
				if shell.CanPass([]byte(p.Key)) {
					e.Show = showDB(m, "key", "--history", p.Key)
				}
				found(v, e)
			}
		}
	}
	return true
}
