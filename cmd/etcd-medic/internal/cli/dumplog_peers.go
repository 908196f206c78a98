package cli

import (
	"context"
	"fmt"
	"slices"

	"github.com/etcd-medic/etcd-medic/cmd/etcd-medic/internal/render"
	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/dumplog"
)

// commits is how far the log of a source is known to be committed.
type commits struct {
	commit uint64
	peers  []render.LogPeer
}

// askPeers opens the sources of --peer and raises the commit index of m to what they prove.
func (o *dumpLogOptions) askPeers(ctx context.Context, m *evidence.Member) (commits, error) {
	known := commits{commit: m.Commit}
	if len(o.peers) == 0 {
		return known, nil
	}
	specs := make([]evidence.Spec, len(o.peers))
	for i, p := range o.peers {
		var err error
		if specs[i], err = evidence.ParseSpec(p); err != nil {
			return known, usagef("see etcd-medic help sources", "--peer: %v", err)
		}
	}
	set, err := evidence.Open(ctx, specs, evidence.Options{Progress: o.io.Progress()})
	o.io.clearStatus()
	if err != nil {
		return known, err
	}
	defer func() { _ = set.Close() }()
	for _, f := range set.Failed {
		return known, fmt.Errorf("--peer %s: %w", f.Spec.Where, f.Err)
	}
	for _, p := range set.Members {
		unread := slices.IndexFunc(p.Problems, func(x evidence.Problem) bool { return x.Part == "wal" })
		switch {
		case !p.HasWAL() && unread >= 0:
			return known, fmt.Errorf("--peer %s: %w", p.Label(), p.Problems[unread].Err)
		case !p.HasWAL() && p.Source.Kind == evidence.KindDataDir: // its log was taken away
			return known, fmt.Errorf("--peer %s has no log", p.Label())
		case !p.HasWAL():
			return known, usagef("name a data dir", "--peer %s has no log", p.Label())
		case m.ClusterID != 0 && p.ClusterID != 0 && m.ClusterID != p.ClusterID:
			return known, usagef("", "--peer %s is of cluster %s, the source of %s", p.Label(), p.ClusterID,
				m.ClusterID)
		}
		agrees := agreement(&m.WAL.Summary, &p.WAL.Summary, p.Commit)
		known.commit = max(known.commit, agrees)
		known.peers = append(known.peers, render.LogPeer{Name: p.Label(), Commit: p.Commit, Agrees: agrees})
	}
	return known, set.Unchanged(ctx)
}

// agreement returns the highest index up to limit at which two logs have the same entry, by term and index. By raft's
// log matching, they are equal up to there.
func agreement(a, b *dumplog.Summary, limit uint64) (best uint64) {
	ta, tb := spans(a), spans(b)
	for _, x := range ta {
		for _, y := range tb {
			if last := min(x.Last, y.Last, limit); x.Term == y.Term && last >= max(x.First, y.First) {
				best = max(best, last)
			}
		}
	}
	return best
}

// spans returns the entries of the effective log, and one entry per snapshot.
func spans(s *dumplog.Summary) []dumplog.TermRange {
	out := append([]dumplog.TermRange(nil), s.Terms...)
	for i := range s.Snapshots {
		if r := &s.Snapshots[i]; r.Index > 0 {
			out = append(out, dumplog.TermRange{Term: r.Term, First: r.Index, Last: r.Index})
		}
	}
	return out
}

// endError says what is ahead of the end of a log.
type endError struct {
	why         string
	beyond, end uint64
}

// Error returns what is beyond the end of the log, with both indexes.
func (e *endError) Error() string {
	return fmt.Sprintf("%s is at index %d, the log ends with %d", e.why, e.beyond, e.end)
}
