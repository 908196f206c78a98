package check

import (
	"crypto/sha256"
	"slices"

	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/compare/replay"
)

// leastTelling is the length from which on a value is not taken for another one with a few bits changed, in bytes.
const leastTelling = 8

// maxRefuted bounds the entries for which databases are read, each from the beginning to the end.
const maxRefuted = 8

// recordsRefute are the members whose database holds a record of what the entry in another log puts, at whatever
// revision, and none of what the entry in their own log puts, which no other database holds either. It decides where
// the replay cannot, below the compact revision: what is left there was written by one of the two.
func (in alteredLogs) recordsRefute(diffs []replay.LogDiff) (out []int) {
	if len(diffs) != 1 || !comparablePuts(diffs[0].Puts) {
		return nil
	}
	d := diffs[0]
	known, ok := in.refuted[d.Index]
	if ok || len(in.refuted) >= maxRefuted {
		return known
	}
	if in.refuted == nil {
		in.refuted = map[uint64][]int{}
	}
	out = in.refutedBy(&d)
	in.refuted[d.Index] = out
	return out
}

func (in alteredLogs) refutedBy(d *replay.LogDiff) (out []int) {
	shown := make([]map[int]bool, len(d.Puts)) // by version: the members whose database holds a record of it
	for v := range d.Puts {
		shown[v] = map[int]bool{}
	}
	for i, m := range in.Members {
		if m.HasDB() && !in.recordsOf(m, d.Puts, func(v int) { shown[v][i] = true }) {
			return nil
		}
	}
	for v, holders := range d.Versions {
		if len(shown[v]) > 0 {
			continue
		}
		if slices.ContainsFunc(shown, func(other map[int]bool) bool {
			return slices.ContainsFunc(holders, func(i int) bool { return other[i] })
		}) {
			out = append(out, holders...)
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
func (in alteredLogs) recordsOf(m *evidence.Member, puts []*replay.PutSum, found func(version int)) bool {
	for r, err := range m.DB.Handle.History(in.Context(), []byte(puts[0].Key)) {
		if err != nil || r.Err != nil {
			return false
		}
		if r.Tombstone {
			continue
		}
		for v, p := range puts {
			if r.KV.Lease == p.Lease && len(r.KV.Value) == p.Size && sha256.Sum256(r.KV.Value) == p.Value {
				found(v)
			}
		}
	}
	return true
}
