package diff

import (
	"fmt"
	"slices"
	"strings"

	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/compare/replay"
	"github.com/etcd-medic/etcd-medic/release"
)

// v2Store compares the v2 store in the newest intact .snap files: members, removed members, cluster version and keys of
// v2 clients. A server up to 3.5 boots with it. Files of different indexes are compared only if no entry between them
// can have changed the store. It returns nil if fewer than two sources have one.
func (r *Result) v2Store(rp *replay.Result, o Options) *Bucket {
	var take []int
	low, high := uint64(1<<64-1), uint64(0)
	for _, i := range r.taking() {
		if f := r.Members[i].NewestSnap(); f != nil && f.V2 != nil {
			take = append(take, i)
			low, high = min(low, f.Index), max(high, f.Index)
		}
	}
	if len(take) < 2 {
		return nil
	}
	b := &Bucket{Name: "v2store", Only: make([]int, len(r.Members))}
	b.tabulate(r, take, v2Rows, o)
	equal := b.Differ == 0
	if !equal && low < high {
		if b.Reason = v2Moved(rp, low, high); b.Reason != "" {
			return b
		}
	}
	b.Equal = release.AnswerOf(equal)
	return b
}

// v2Moved returns why the stores of two snapshots may normally differ, "" if they may not.
func v2Moved(rp *replay.Result, low, high uint64) string {
	if rp == nil || rp.Survey == nil || !rp.Covers(low, high) {
		return fmt.Sprintf("the .snap files are of indexes %d to %d, and the logs do not have all entries between them",
			low, high)
	}
	for _, bucket := range []string{"members", "members_removed", "cluster", "v2"} {
		if at := rp.Survey.LastTouch[bucket]; at > low {
			return fmt.Sprintf("the .snap files are of indexes %d to %d, and entry %d can change the v2 store", low,
				high, at)
		}
	}
	return ""
}

func v2Rows(m *evidence.Member) map[string]string {
	v := m.NewestSnap().V2
	out := map[string]string{}
	for _, x := range v.Members {
		peers, clients := slices.Clone(x.PeerURLs), slices.Clone(x.ClientURLs)
		slices.Sort(peers)
		slices.Sort(clients)
		s := "peer URLs " + strings.Join(peers, ",")
		if x.Name != "" {
			s = "name " + x.Name + ", " + s
		}
		if len(clients) > 0 {
			s += ", client URLs " + strings.Join(clients, ",")
		}
		if x.IsLearner {
			s += " learner"
		}
		out["member "+x.ID.String()] = s
	}
	for _, id := range v.Removed {
		out["removed "+id.String()] = "removed"
	}
	if v.Version != "" {
		out["version"] = v.Version
	}
	for _, k := range v.UserKeys {
		out["key "+k] = "present"
	}
	return out
}
