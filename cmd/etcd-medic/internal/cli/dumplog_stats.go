package cli

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strconv"
	"sync"

	"github.com/etcd-medic/etcd-medic/cmd/etcd-medic/internal/render"
	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/dumplog"
)

// statsPass counts the entries of each segment separately, so that the cores share no counters.
type statsPass struct {
	mu    sync.Mutex
	parts map[int]*dumplog.Stats
}

// visit is for dumplog.Log.ScanWith.
func (p *statsPass) visit(segment int) func(*dumplog.Entry) {
	part := new(dumplog.Stats)
	p.mu.Lock()
	if p.parts == nil {
		p.parts = map[int]*dumplog.Stats{}
	}
	p.parts[segment] = part
	p.mu.Unlock()
	var dec dumplog.Decoder
	return func(e *dumplog.Entry) {
		r, _ := dec.Decode(e)
		part.Add(e, r)
	}
}

func (p *statsPass) all() *dumplog.Stats {
	sum := &dumplog.Stats{}
	for _, segment := range slices.Sorted(maps.Keys(p.parts)) {
		sum.Merge(p.parts[segment])
	}
	return sum
}

// logStats counts the entries that a filter selects.
func logStats(ctx context.Context, s *render.Stream, m *evidence.Member, f *dumplog.Filter) (int, error) {
	st, _, err := m.WAL.Log.Stats(ctx, f)
	if err != nil {
		return 0, err
	}
	return writeStats(s, m, st, m.WAL.Summary.Damage)
}

// writeStats writes counts by kind, term, proposer, user, size and prefix, the largest first.
func writeStats(s *render.Stream, m *evidence.Member, st *dumplog.Stats, damage []*dumplog.DamageError) (int, error) {
	by := newProposers(m)
	rows := []render.Row{render.LogCount{Of: "total", Count: st.Total}}
	rows = append(rows, counts("kind", st.Kinds, func(k dumplog.Kind) string { return string(k) })...)
	rows = append(rows, counts("term", st.Terms, func(t uint64) string { return strconv.FormatUint(t, 10) })...)
	if st.OtherTerms.Entries > 0 {
		rows = append(rows, render.LogCount{Of: "term", Name: dumplog.OtherPrefix, Count: st.OtherTerms})
	}
	rows = append(rows, counts("proposer", st.Proposers,
		func(p uint16) string { return by.of(dumplog.RequestID(p) << 48) })...)
	rows = append(rows, counts("user", st.Users, func(u string) string { return u })...)
	rows = append(rows, counts("prefix", st.Prefixes, func(p string) string { return p })...)
	for i, n := range st.Sizes {
		if n > 0 {
			rows = append(rows, render.LogSize{Class: i, Entries: n})
		}
	}
	if st.Largest > 0 {
		rows = append(rows, render.LogCount{Of: "largest", Name: "index " + strconv.FormatUint(st.LargestIndex, 10) +
			" at " + st.LargestPos.String(),
			Count: dumplog.Count{Entries: 1, Bytes: st.Largest}})
	}
	shown := min(len(damage), maxDamageOfStats)
	rows = append(rows, damageRows(damage[:shown])...)
	if more := len(damage) - shown; more > 0 {
		rows = append(rows, render.LogCount{Of: "damage", Name: "places that are not listed (--raw lists all)",
			Count: dumplog.Count{Entries: int64(more)}})
	}
	return len(damage) + int(st.Undecoded), writeAll(s, rows)
}

// maxDamageOfStats is how many damaged places are listed with counts.
const maxDamageOfStats = 20

func damageRows(damage []*dumplog.DamageError) []render.Row {
	rows := make([]render.Row, len(damage))
	for i, d := range damage {
		rows[i] = render.LogDamage{DamageError: d}
	}
	return rows
}

func counts[K comparable](of string, m map[K]*dumplog.Count, name func(K) string) []render.Row {
	keys := slices.SortedFunc(maps.Keys(m), func(a, b K) int {
		return cmp.Or(cmp.Compare(m[b].Entries, m[a].Entries), cmp.Compare(name(a), name(b)))
	})
	rows := make([]render.Row, len(keys))
	for i, k := range keys {
		rows[i] = render.LogCount{Of: of, Name: name(k), Count: *m[k]}
	}
	return rows
}

func writeAll(s *render.Stream, rows []render.Row) error {
	for _, r := range rows {
		if err := s.Write(r); err != nil {
			return err
		}
	}
	return nil
}
