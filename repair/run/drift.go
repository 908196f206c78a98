package run

import (
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"slices"
	"strings"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/etcd-medic/etcd-medic/compare/check"
	"github.com/etcd-medic/etcd-medic/repair/plan"
)

// Drift is what a member of the running cluster has applied since its data dir was copied for the plan.
type Drift struct {
	Member string `json:"member"`
	// PlannedRevision and PlannedIndex are those of its copy, Revision and AppliedIndex the present ones.
	PlannedRevision int64  `json:"plannedRevision"`
	PlannedIndex    uint64 `json:"plannedIndex"`
	Revision        int64  `json:"revision"`
	AppliedIndex    uint64 `json:"appliedIndex"`
	// Unlisted counts keys that this member has changed since then in a way in which the best member has not. Replacing
	// the member loses them, and the plan does not list them. UnlistedKeys are the first of them.
	Unlisted     int           `json:"unlisted"`
	UnlistedKeys []check.Bytes `json:"unlistedKeys,omitempty"`
	// Unknown says why this could not be found out, or not completely.
	Unknown string `json:"unknown,omitempty"`
}

const (
	// driftEvents bounds how many changes are held in memory, 16 bytes each.
	driftEvents = 2_000_000
	// driftKeys bounds how many differing keys are requested, driftShown how many are named.
	driftKeys, driftShown = 10_000, 20
	// driftTime bounds how long the changes of one member are read.
	driftTime = 2 * time.Minute
)

// change is a put or a delete of a key, without its revision: members that differ count revisions differently.
type change [2]uint64

// history reads changes; the seeds make the hashes of two members comparable.
type history struct{ a, b maphash.Seed }

func newHistory() *history { return &history{maphash.MakeSeed(), maphash.MakeSeed()} }

func (h *history) of(e *clientv3.Event) change {
	b := make([]byte, 0, len(e.Kv.Key)+len(e.Kv.Value)+16)
	b = fmt.Appendf(b, "%d %d ", e.Type, len(e.Kv.Key))
	b = append(append(b, e.Kv.Key...), e.Kv.Value...)
	return change{maphash.Bytes(h.a, b), maphash.Bytes(h.b, b)}
}

var errTooMany = errors.New("more than two million changes")

// drifts finds what members accepted since their data dirs were copied.
type drifts struct{ *cluster }

// drift compares the changes on a member since its copy with those on the best member.
func (ds *drifts) drift(ctx context.Context, m *plan.Member) (*Drift, error) {
	st, err := ds.status(ctx, m)
	if err != nil {
		return nil, err
	}
	d := &Drift{Member: m.Name, PlannedRevision: m.Revision, PlannedIndex: m.Applied, Revision: st.Header.GetRevision(),
		AppliedIndex: st.RaftAppliedIndex}
	best := ds.plan.Best
	switch {
	case st.Header.GetClusterId() != uint64(ds.plan.Cluster.ID):
		d.Unknown = "it is a member of another cluster"
		return d, nil
	case m.Revision == 0:
		d.Unknown = "the plan does not know where its copy stood"
		return d, nil
	case d.Revision <= m.Revision:
		return d, nil
	}
	goal, err := ds.reaches(ctx, d.AppliedIndex)
	if err != nil {
		return nil, err
	}
	// The best member's copy may be the newer one; each entry raises the revision by one at most.
	from := best.Revision + 1
	if best.AppliedIndex > m.Applied {
		from = max(1, from-int64(best.AppliedIndex-m.Applied))
	}
	timed, cancel := context.WithTimeout(ctx, driftTime)
	defer cancel()
	keys, unknown, err := ds.extraWrites(timed, m, from, goal.Header.GetRevision(), d)
	switch {
	case errors.Is(err, errTooMany):
		d.Unknown = "it accepted " + err.Error() + " since"
		return d, nil
	case timed.Err() != nil && ctx.Err() == nil:
		d.Unknown = fmt.Sprintf("its changes could not be read within %v", driftTime)
		return d, nil
	case err != nil:
		return nil, err
	}
	d.Unknown = unknown
	return d, ds.keepDiffering(ctx, m, keys, d)
}

// reaches waits until the best member has applied an index.
func (ds *drifts) reaches(ctx context.Context, index uint64) (*clientv3.StatusResponse, error) {
	var st *clientv3.StatusResponse
	err := ds.until(ctx, ds.limits.step, ds.best().Name+" catches up", func(ctx context.Context) (err error) {
		if st, err = ds.status(ctx, ds.best()); err == nil && st.RaftAppliedIndex < index {
			err = fmt.Errorf("applied %d of %d", st.RaftAppliedIndex, index)
		}
		return err
	})
	return st, err
}

// extraWrites returns the keys that m changed since its copy in a way in which the best member did not.
func (ds *drifts) extraWrites(ctx context.Context, m *plan.Member, from, to int64, d *Drift) (keys [][]byte,
	unknown string,
	err error) {
	h := newHistory()
	known := map[change]int32{}
	gap, err := ds.changes(ctx, ds.best(), from, to, func(e *clientv3.Event) error {
		if len(known) >= driftEvents {
			return errTooMany
		}
		known[h.of(e)]++
		return nil
	})
	if err != nil {
		return nil, "", err
	}
	unknown = compacted(ds.best().Name, gap)
	seen := map[string]bool{}
	gap, err = ds.changes(ctx, m, m.Revision+1, d.Revision, func(e *clientv3.Event) error {
		c := h.of(e)
		if known[c] > 0 {
			known[c]--
			return nil
		}
		if len(seen) >= driftEvents {
			return errTooMany
		}
		seen[string(e.Kv.Key)] = true
		return nil
	})
	for k := range seen {
		keys = append(keys, []byte(k))
	}
	slices.SortFunc(keys, func(a, b []byte) int { return strings.Compare(string(a), string(b)) })
	if unknown == "" {
		unknown = compacted(m.Name, gap)
	}
	return keys, unknown, err
}

func compacted(name string, gap int64) string {
	if gap == 0 {
		return ""
	}
	return fmt.Sprintf("%s was compacted at revision %d meanwhile: deletes and superseded changes up to there could "+
		"not be compared", name, gap)
}

// keepDiffering keeps the keys whose present state differs: a change that was superseded on both is not a loss.
func (ds *drifts) keepDiffering(ctx context.Context, m *plan.Member, keys [][]byte, d *Drift) error {
	if len(keys) > driftKeys {
		d.Unknown = fmt.Sprintf("it changed %d keys in a way in which %s did not; only the first %d were "+
			"compared", len(keys), ds.best().Name, driftKeys)
		keys = keys[:driftKeys]
	}
	for _, k := range keys {
		same, err := ds.sameState(ctx, m, string(k))
		if err != nil {
			return err
		}
		if same {
			continue
		}
		if d.Unlisted++; len(d.UnlistedKeys) < driftShown {
			d.UnlistedKeys = append(d.UnlistedKeys, k)
		}
	}
	return nil
}

// sameState reads a key from both members, a few times: one may be ahead.
func (ds *drifts) sameState(ctx context.Context, m *plan.Member, key string) (bool, error) {
	for try := 0; ; try++ {
		a, err := ds.serializable(ctx, ds.best(), key)
		if err != nil {
			return false, err
		}
		b, err := ds.serializable(ctx, m, key)
		if err != nil {
			return false, err
		}
		if (a == nil) == (b == nil) && (a == nil || string(a.Value) == string(b.Value)) {
			return true, nil
		}
		if try == 2 {
			return false, nil
		}
		time.Sleep(ds.limits.poll)
	}
}
