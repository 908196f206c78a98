package diff

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/dumplog"
	"github.com/etcd-medic/etcd-medic/release"
)

// v2Store compares the v2 store in the newest intact .snap files: members, removed members, cluster version and keys of
// v2 clients. A server up to 3.5 boots with it. Files of different indexes are compared only if no entry between them
// can have changed the store. It returns nil if fewer than two sources have one.
func (r *rowComparer) v2Store() *Bucket {
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
	r.tabulate(b, take, r.v2RowsOf(take))
	if b.Differ > 0 && low < high {
		still, reason := r.v2Unmoved(take, low, high)
		if reason != "" {
			b.Reason = reason
			return b
		}
		b = still
	}
	b.Equal = release.AnswerOf(b.Differ == 0)
	return b
}

// v2Unmoved compares the rows that no entry between two snapshots can have changed. If they are equal, or the entries
// are not known, it returns why the stores may normally differ.
func (r *rowComparer) v2Unmoved(take []int, low, high uint64) (b *Bucket, reason string) {
	if r.rp == nil || r.rp.Survey == nil || !r.rp.Covers(low, high) {
		return nil, fmt.Sprintf("the .snap files are of indexes %d to %d, and the logs do not have all entries "+
			"between them", low, high)
	}
	moved := r.v2Moves(low, high)
	first := uint64(0)
	b = &Bucket{Name: "v2store", Only: make([]int, len(r.Members))}
	rowsOf := r.v2RowsOf(take)
	r.tabulate(b, take, func(m *evidence.Member) map[string]string {
		rows := rowsOf(m)
		for k := range rows {
			at := moved[k]
			if strings.HasPrefix(k, "key ") {
				at = moved["key "]
			}
			if at > 0 {
				first = max(first, at)
				delete(rows, k)
			}
		}
		return rows
	})
	if b.Differ == 0 {
		return nil, fmt.Sprintf("the .snap files are of indexes %d to %d, and entry %d can change the v2 store", low,
			high, first)
	}
	return b, ""
}

// v2Moves returns an entry above low and up to high for each row of the v2 store that one can change. All keys of v2
// clients are one row, "key ".
func (r *rowComparer) v2Moves(low, high uint64) map[string]uint64 {
	out := map[string]uint64{}
	note := func(row string, index uint64) {
		if index > low && index <= high {
			out[row] = max(out[row], index)
		}
	}
	for id, starts := range r.rp.Survey.Starts {
		for _, s := range starts {
			note("member "+id.String(), s.Index)
		}
	}
	for _, v := range r.rp.Survey.Versions {
		note("version", v.Index)
	}
	for _, op := range r.rp.Survey.V2 {
		note("key ", op.Index)
	}
	if r.rp.Survey.V2LeftOut > 0 {
		note("key ", high)
	}
	for _, m := range r.Members {
		for i := range m.WAL.Conf {
			c := &m.WAL.Conf[i]
			note("member "+c.Change.NodeID.String(), c.Index)
			note("removed "+c.Change.NodeID.String(), c.Index)
		}
	}
	return out
}

// v2RowsOf are the rows that can be compared between these members. A restore writes a store with members only; later
// ones have the cluster version and the removed members that the backup brought along, without an entry.
func (r *rowComparer) v2RowsOf(take []int) func(m *evidence.Member) map[string]string {
	if !slices.ContainsFunc(take, func(i int) bool { return ofRestore(r.Members[i].NewestSnap()) }) {
		return v2Rows
	}
	return func(m *evidence.Member) map[string]string {
		rows := v2Rows(m)
		maps.DeleteFunc(rows, func(k, _ string) bool { return k == "version" || strings.HasPrefix(k, "removed ") })
		return rows
	}
}

// ofRestore reports whether a restore wrote the file: it stands for one entry for each member.
func ofRestore(f *dumplog.SnapFile) bool {
	return f.Term == 1 && f.Index == uint64(len(f.V2.Members)) && f.V2.Version == "" && len(f.V2.Removed) == 0
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
