package run

import (
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"slices"
	"strings"
	"time"

	"go.etcd.io/etcd/api/v3/mvccpb"
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

// drift compares the changes on a member since its copy with those on the best member.
func (r *runner) drift(ctx context.Context, m *plan.Member) (*Drift, error) {
	st, err := r.status(ctx, m)
	if err != nil {
		return nil, err
	}
	d := &Drift{Member: m.Name, PlannedRevision: m.Revision, PlannedIndex: m.Applied, Revision: st.Header.GetRevision(),
		AppliedIndex: st.RaftAppliedIndex}
	best := r.plan.Best
	switch {
	case st.Header.GetClusterId() != uint64(r.plan.Cluster.ID):
		d.Unknown = "it is a member of another cluster"
		return d, nil
	case m.Revision == 0:
		d.Unknown = "the plan does not know where its copy stood"
		return d, nil
	case d.Revision <= m.Revision:
		return d, nil
	}
	goal, err := r.reaches(ctx, d.AppliedIndex)
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
	keys, unknown, err := r.extraWrites(timed, m, from, goal.Header.GetRevision(), d)
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
	return d, r.unlisted(ctx, m, keys, d)
}

// reaches waits until the best member has applied an index.
func (r *runner) reaches(ctx context.Context, index uint64) (*clientv3.StatusResponse, error) {
	var st *clientv3.StatusResponse
	err := r.until(ctx, r.limits.step, r.best().Name+" catches up", func(ctx context.Context) (err error) {
		if st, err = r.status(ctx, r.best()); err == nil && st.RaftAppliedIndex < index {
			err = fmt.Errorf("applied %d of %d", st.RaftAppliedIndex, index)
		}
		return err
	})
	return st, err
}

// extraWrites returns the keys that m changed since its copy in a way in which the best member did not.
func (r *runner) extraWrites(ctx context.Context, m *plan.Member, from, to int64, d *Drift) (keys [][]byte,
	unknown string,
	err error) {
	h := newHistory()
	known := map[change]int32{}
	gap, err := r.changes(ctx, r.best(), from, to, func(e *clientv3.Event) error {
		if len(known) >= driftEvents {
			return errTooMany
		}
		known[h.of(e)]++
		return nil
	})
	if err != nil {
		return nil, "", err
	}
	unknown = compacted(r.best().Name, gap)
	seen := map[string]bool{}
	gap, err = r.changes(ctx, m, m.Revision+1, d.Revision, func(e *clientv3.Event) error {
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
	return fmt.Sprintf("%s was compacted at revision %d meanwhile: superseded changes up to there could not be compared", name, gap)
}

// changes reads a member's changes of keys in a range of revisions, from its own database. gap is the revision up to
// which changes were compacted, 0 when none were.
func (r *runner) changes(ctx context.Context, m *plan.Member, from, to int64, f func(*clientv3.Event) error) (gap int64,
	err error) {
	for from <= to {
		c, _, err := r.host.client(m)
		if err != nil {
			return gap, err
		}
		at, err := r.watch(ctx, c, from, to, f)
		if err != nil || at == 0 {
			return gap, err
		}
		gap, from = at, at+1
	}
	return gap, nil
}

func (r *runner) watch(ctx context.Context, c *clientv3.Client, from, to int64,
	f func(*clientv3.Event) error) (compactRevision int64, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	for resp := range c.Watch(ctx, "\x00", clientv3.WithFromKey(), clientv3.WithRev(from)) {
		if resp.CompactRevision > 0 {
			return resp.CompactRevision, nil
		}
		if err := resp.Err(); err != nil {
			return 0, err
		}
		for _, e := range resp.Events {
			if e.Kv.ModRevision > to {
				return 0, nil
			}
			if err := f(e); err != nil {
				return 0, err
			}
		}
		if n := len(resp.Events); n > 0 && resp.Events[n-1].Kv.ModRevision >= to {
			return 0, nil
		}
	}
	return 0, ctx.Err()
}

// unlisted keeps the keys whose present state differs: a change that was superseded on both is not a loss.
func (r *runner) unlisted(ctx context.Context, m *plan.Member, keys [][]byte, d *Drift) error {
	if len(keys) > driftKeys {
		d.Unknown = fmt.Sprintf("it changed %d keys in a way in which %s did not; only the first %d were "+
			"compared", len(keys), r.best().Name, driftKeys)
		keys = keys[:driftKeys]
	}
	for _, k := range keys {
		same, err := r.sameState(ctx, m, string(k))
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
func (r *runner) sameState(ctx context.Context, m *plan.Member, key string) (bool, error) {
	for try := 0; ; try++ {
		a, err := r.serializable(ctx, r.best(), key)
		if err != nil {
			return false, err
		}
		b, err := r.serializable(ctx, m, key)
		if err != nil {
			return false, err
		}
		if (a == nil) == (b == nil) && (a == nil || string(a.Value) == string(b.Value)) {
			return true, nil
		}
		if try == 2 {
			return false, nil
		}
		time.Sleep(r.limits.poll)
	}
}

func (r *runner) serializable(ctx context.Context, m *plan.Member, key string) (kv *mvccpb.KeyValue, err error) {
	err = r.until(ctx, r.limits.step, "read from "+m.Name, func(ctx context.Context) error {
		return r.ask(ctx, m, func(ctx context.Context, c *clientv3.Client) error {
			resp, err := c.Get(ctx, key, clientv3.WithSerializable())
			if err == nil && len(resp.Kvs) > 0 {
				kv = resp.Kvs[0]
			}
			return err
		})
	})
	return kv, err
}
