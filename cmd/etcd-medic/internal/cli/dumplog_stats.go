package cli

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"strconv"

	"github.com/etcd-medic/etcd-medic/cmd/etcd-medic/internal/render"
	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/dumplog"
)

// logStats writes counts by kind, term, proposer, user and prefix, the largest first.
func logStats(ctx context.Context, s *render.Stream, m *evidence.Member, f *dumplog.Filter) (int, error) {
	st, sum, err := m.WAL.Log.Stats(ctx, f)
	if err != nil {
		return 0, err
	}
	by := newProposers(m)
	rows := []render.Row{render.LogCount{Of: "total", Count: st.Total}}
	rows = append(rows, counts("kind", st.Kinds, func(k dumplog.Kind) string { return string(k) })...)
	rows = append(rows, counts("term", st.Terms, func(t uint64) string { return strconv.FormatUint(t, 10) })...)
	rows = append(rows, counts("proposer", st.Proposers, func(p uint16) string { return by.of(dumplog.RequestID(p) << 48) })...)
	rows = append(rows, counts("user", st.Users, func(u string) string { return u })...)
	rows = append(rows, counts("prefix", st.Prefixes, func(p string) string { return p })...)
	if st.Largest > 0 {
		rows = append(rows, render.LogCount{Of: "largest", Name: "index " + strconv.FormatUint(st.LargestIndex, 10) + " at " + st.LargestPos.String(),
			Count: dumplog.Count{Entries: 1, Bytes: st.Largest}})
	}
	for _, d := range sum.Damage {
		rows = append(rows, render.LogDamage{DamageError: d})
	}
	return len(sum.Damage) + int(st.Undecoded), writeAll(s, rows)
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

// logLives writes the process lives that request IDs show.
func logLives(ctx context.Context, s *render.Stream, m *evidence.Member) (int, error) {
	var lives dumplog.Lives
	for id := range m.Membership.Names {
		lives.AddMember(id)
	}
	lives.AddMember(m.Membership.Voters...)
	var dec dumplog.Decoder
	bad := 0
	for e, err := range m.WAL.Log.Entries(ctx, m.WAL.Summary) {
		var dmg *dumplog.DamageError
		switch {
		case errors.As(err, &dmg):
			bad++
			continue
		case err != nil:
			return bad, err
		}
		if r, err := dec.Decode(&e); err == nil {
			lives.Add(&e, r)
		}
	}
	by := newProposers(m)
	var rows []render.Row
	for _, l := range lives.List() {
		rows = append(rows, render.LogLife{Life: l, Proposer: by.of(l.FirstID)})
	}
	return bad, writeAll(s, rows)
}

func writeAll(s *render.Stream, rows []render.Row) error {
	for _, r := range rows {
		if err := s.Write(r); err != nil {
			return err
		}
	}
	return nil
}
