package soak

import (
	"context"
	"fmt"
	"strings"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// kube is what a kube-apiserver remembers: the mod revision of each object, and its compaction.
type kube struct {
	mod                     map[string]int64
	events                  clientv3.LeaseID
	eventUses               int
	compactVersion, compact int64
}

var kubeKinds = []string{"pods/default", "configmaps/kube-system", "leases/kube-node-lease", "services/specs/default",
	"secrets/app", "events/default"}

// kubeWork writes as kube-apiserver does: every write is a transaction that compares the mod revision of its one key.
func (h *History) kubeWork() {
	if h.kube.mod == nil {
		h.kube.mod = map[string]int64{}
	}
	kind := kubeKinds[h.rng.IntN(len(kubeKinds))]
	key := fmt.Sprintf("/registry/%s/obj-%d", kind, h.rng.IntN(6))
	what, val := h.rng.IntN(16), "k8s\x00"+h.value()
	cli := h.client()
	ctx, cancel := h.context()
	defer cancel()
	known := h.kube.mod[key]
	switch {
	case what == 0: // what a controller with an old copy asks for
		known = max(0, known-1)
		h.guarded(ctx, cli, key, known, clientv3.OpPut(key, val))
	case what == 1:
		h.kubeCompact(ctx, cli)
	case what < 5 && known > 0:
		h.guarded(ctx, cli, key, known, clientv3.OpDelete(key))
	default:
		var opts []clientv3.OpOption
		if strings.HasPrefix(kind, "events") {
			opts = append(opts, clientv3.WithLease(h.eventLease(ctx, cli)))
		}
		h.guarded(ctx, cli, key, known, clientv3.OpPut(key, val, opts...))
	}
}

// guarded makes a write depend on the mod revision and learns the present one when it is refused.
func (h *History) guarded(ctx context.Context, cli *clientv3.Client, key string, known int64, op clientv3.Op) {
	r, err := cli.Txn(ctx).If(clientv3.Compare(clientv3.ModRevision(key), "=",
		known)).Then(op).Else(clientv3.OpGet(key)).Commit()
	switch {
	case err != nil:
		delete(h.kube.mod, key)
	case r.Succeeded && op.IsPut():
		h.kube.mod[key] = r.Header.Revision
	case r.Succeeded:
		delete(h.kube.mod, key)
	case len(r.Responses) > 0 && len(r.Responses[0].GetResponseRange().GetKvs()) > 0:
		h.kube.mod[key] = r.Responses[0].GetResponseRange().Kvs[0].ModRevision
	default:
		delete(h.kube.mod, key)
	}
}

// eventLease is one lease for many events, as kube-apiserver uses them.
func (h *History) eventLease(ctx context.Context, cli *clientv3.Client) clientv3.LeaseID {
	if h.kube.events == 0 || h.kube.eventUses > 5 {
		ttl := pick(h.rng, int64(3600), 3600, 2)
		if r, err := cli.Grant(ctx, ttl); err == nil {
			h.kube.events, h.kube.eventUses = r.ID, 0
		}
	}
	h.kube.eventUses++
	return h.kube.events
}

// kubeCompact is the compaction of kube-apiserver: members race for compact_rev_key, the winner compacts at the
// revision of the round before.
func (h *History) kubeCompact(ctx context.Context, cli *clientv3.Client) {
	r, err := cli.Txn(ctx).If(clientv3.Compare(clientv3.Version("compact_rev_key"), "=", h.kube.compactVersion)).
		Then(clientv3.OpPut("compact_rev_key",
			fmt.Sprint(h.kube.compact))).Else(clientv3.OpGet("compact_rev_key")).Commit()
	if err != nil {
		return
	}
	if !r.Succeeded {
		if kvs := r.Responses[0].GetResponseRange().GetKvs(); len(kvs) > 0 {
			h.kube.compactVersion = kvs[0].Version
		}
		h.kube.compact = r.Header.Revision
		return
	}
	h.kube.compactVersion++
	if h.kube.compact > 0 {
		_, _ = cli.Compact(ctx, h.kube.compact)
	}
	h.kube.compact = r.Header.Revision
}
