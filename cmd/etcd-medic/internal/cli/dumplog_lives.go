package cli

import (
	"context"
	"errors"

	"github.com/etcd-medic/etcd-medic/cmd/etcd-medic/internal/render"
	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/dumplog"
)

// maxTimes bounds the ranges of entries whose times are shown.
const maxTimes = 64

// logLives writes the process runs that request IDs show, and when ranges of entries were proposed.
func logLives(ctx context.Context, s *render.Stream, m *evidence.Member, f *dumplog.Filter) (int, error) {
	var lives dumplog.Lives
	for id := range m.Membership.Names {
		lives.AddMember(id)
	}
	lives.AddMember(m.Membership.Voters...)
	times := dumplog.Times{Near: render.NearTime}
	var dec dumplog.Decoder
	var first, last uint64
	undecoded := 0
	for e, err := range m.WAL.Log.Entries(ctx, &m.WAL.Summary) {
		var dmg *dumplog.DamageError
		if errors.As(err, &dmg) {
			continue // shown below
		}
		if err != nil {
			return 0, err
		}
		r, err := dec.Decode(&e)
		if err != nil {
			undecoded++
			continue
		}
		if !f.Match(&e, r) {
			continue
		}
		lives.Add(&e, r)
		if times.Add(&e, r); first == 0 {
			first = e.Index
		}
		last = max(last, e.Index)
	}
	by, short := newProposers(m), 0
	var rows []render.Row
	for _, l := range lives.List() {
		row := render.LogLife{Life: l, Proposer: by.of(l.FirstID)}
		if row.After, _ = times.Bounds(l.First); row.After.Before(l.Start(render.NearTime)) {
			row.After = l.Start(render.NearTime) // marks of other members may lag
		}
		_, row.Before = times.Bounds(l.Last)
		rows = append(rows, row)
	}
	if n := lives.Unlisted(); n > 0 {
		rows = append(rows, render.LogUnlisted{Requests: n})
		short = 1
	}
	rows = append(rows, timeRows(&times, first, last)...)
	rows = append(rows, damageRows(m.WAL.Summary.Damage)...)
	return undecoded + short + len(m.WAL.Summary.Damage), writeAll(s, rows)
}

// timeRows splits first..last into at most maxTimes ranges at the marks of time.
func timeRows(t *dumplog.Times, first, last uint64) (rows []render.Row) {
	marks := t.Marks()
	if len(marks) == 0 {
		return nil
	}
	step := (len(marks) + maxTimes - 1) / maxTimes
	for i := 0; i < len(marks); i += step {
		r := render.LogTimes{First: marks[i].Index, Last: last, Source: marks[i].Source}
		if j := i + step; j < len(marks) {
			r.Last = marks[j].Index - 1
		}
		if r.First > r.Last {
			continue // two marks of one entry
		}
		r.After, _ = t.Bounds(r.First)
		_, r.Before = t.Bounds(r.Last)
		rows = append(rows, r)
	}
	if at := marks[0].Index; at > first {
		none := render.LogTimes{First: first, Last: at - 1, Before: marks[0].Time}
		rows = append([]render.Row{none}, rows...)
	}
	return rows
}
