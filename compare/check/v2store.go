package check

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/etcd-medic/etcd-medic/compare/diff"
	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/dumplog"
	"github.com/etcd-medic/etcd-medic/internal/plural"
	"github.com/etcd-medic/etcd-medic/release"
)

var v2StoreTrue = described(Check{
	ID:  M15,
	Run: runV2StoreTrue,
})

func runV2StoreTrue(in *Input) Result {
	if in.Replay == nil || in.Replay.Survey == nil {
		return Result{Reason: "the logs could not be merged"}
	}
	var fs []Finding
	why, checked := "no source has a snapshot file with a v2 store", 0
	for _, m := range in.Members {
		if f, ok := in.v2Lists().againstEvents(m); ok {
			checked++
			fs = append(fs, f...)
		}
		s := m.NewestSnap()
		if s == nil || s.V2 == nil || s.Index == 0 {
			continue
		}
		if f, ok := confAgainstV2(m, s); f != nil {
			fs = append(fs, *f)
		} else if ok {
			checked++
		}
		if f, ok := in.v2Lists().againstBuckets(m); ok {
			checked++
			fs = append(fs, f...)
		}
		list, reason := in.v2Lists().againstLog(m)
		if reason != "" {
			why = m.Label() + ": " + reason
			continue
		}
		checked++
		fs = append(fs, list...)
	}
	if f, reason := in.v2Lists().differs(); f != nil {
		if !in.v2Lists().explained(fs) {
			fs = append(fs, *f)
		}
	} else if reason == "" && in.Diff != nil && in.Diff.Find("v2store") != nil {
		checked++
	} else if reason != "" && checked > 0 {
		return outcome(fs, reason)
	}
	if checked == 0 && len(fs) == 0 {
		return Result{Reason: why}
	}
	return outcome(fs, "")
}

// v2Lists compares the v2 stores of the members with each other, with the log and with the buckets.
type v2Lists struct{ *Input }

func (in *Input) v2Lists() v2Lists { return v2Lists{in} }

// differs makes findings of the comparison of the members' stores.
func (in v2Lists) differs() (*Finding, string) {
	if in.Diff == nil {
		return nil, ""
	}
	b := in.Diff.Find("v2store")
	switch {
	case b == nil:
		return nil, ""
	case b.Equal == release.Unknown:
		return nil, b.Reason
	case b.Equal.Certain():
		return nil, ""
	}
	f := Finding{Kind: KindV2StoresDiffer, Severity: Error, Class: ClassMembership,
		Title: plural.Of(b.Differ, "row of the v2 store differs", "rows of the v2 store differ") + " between " +
			"members",
		Explanation: "the newest snapshots of the members hold different v2 stores, and no entry between them " +
			"explains it"}
	for _, row := range b.Rows {
		for i, m := range in.Members {
			if in.Diff.NotCompared[i] != "" || m.NewestSnap() == nil {
				continue
			}
			e := Evidence{Member: m.Label(), File: m.NewestSnap().File, Key: Bytes(row.Key), Field: "v2 store",
				Observed: "absent", Expected: "equal on all members", Show: showLogAs(m, "--snaps")}
			if c := row.Cells[i]; c != nil {
				e.Observed = c.Text
			}
			f.Evidence = append(f.Evidence, e)
			f.Members = appendNew(f.Members, m.Label())
			f.At.Index = max(f.At.Index, m.NewestSnap().Index)
			if m.Version.Has(release.V2StoreKept).Excluded() {
				f.Severity, f.Class = Warning, ""
			}
		}
	}
	f = in.cut(f)
	return &f, ""
}

// explained reports whether the stores of the members that no finding names are equal.
func (in v2Lists) explained(fs []Finding) bool {
	named := func(m *evidence.Member) bool {
		return slices.ContainsFunc(fs, func(f Finding) bool {
			return f.Severity == Error && slices.Contains(f.Members, m.Label())
		})
	}
	return slices.ContainsFunc(in.Members, named) && !slices.ContainsFunc(in.Diff.Find("v2store").Rows,
		func(row diff.Row) bool {
			var first *diff.Cell
			seen := false
			for i, m := range in.Members {
				if in.Diff.NotCompared[i] != "" || m.NewestSnap() == nil || m.NewestSnap().V2 == nil || named(m) {
					continue
				}
				if seen && cellOr(row.Cells[i], "absent") != cellOr(first, "absent") {
					return true
				}
				first, seen = row.Cells[i], true
			}
			return false
		})
}

// againstLog compares the store in the member's newest snapshot with the state that results from an older snapshot,
// or from an empty store, and the log.
func (in v2Lists) againstLog(m *evidence.Member) ([]Finding, string) {
	w := newV2World(m.Version.Release())
	from, reason := w.begin(m)
	if reason != "" {
		return nil, reason
	}
	snap := m.NewestSnap()
	if index := in.Replay.DiffWithin(from, snap.Index); index > 0 {
		return nil, fmt.Sprintf("the logs hold different entries at index %d", index)
	}
	w.run(in.Input, m, from, snap.Index)
	members, keys := w.differences(snap.V2)
	if m.Version.Has(release.V2StoreKept).Excluded() || in.Replay.Survey.V2LeftOut > 0 {
		keys = nil
	}
	var fs []Finding
	for _, x := range []struct {
		kind  Kind
		field string
		class Class
		what  string
		rows  []v2Difference
	}{{KindV2MembersAgainstLog, "v2 member list", ClassMembership, "the member list", members},
		{KindV2KeysAgainstLog, "v2 keys", ClassDataDivergence, "keys", keys}} {
		rows := x.rows
		if len(rows) == 0 {
			continue
		}
		f := Finding{Kind: x.kind, Severity: Error, Class: x.class, Members: []string{m.Label()},
			At: At{Term: snap.Term, Index: snap.Index},
			Title: fmt.Sprintf("%s: %s in the v2 store of the newest snapshot contradicts the log in %s",
				m.Label(), x.what, plural.Of(len(rows), "place", "places")),
			Explanation: fmt.Sprintf("what the log's entries %d..%d make of the store is another content than %s holds",
				from+1, snap.Index, snap.File)}
		if m.Version.Has(release.V2StoreKept).Excluded() {
			f.Severity, f.Class = Warning, ""
		}
		if x.kind == KindV2KeysAgainstLog && len(snap.V2.UserKeys) == 0 {
			f.Severity, f.Class = Warning, ""
			f.Title = fmt.Sprintf("%s: the v2 store of the newest snapshot holds no keys, the log wrote %d", m.Label(),
				len(rows))
			f.Explanation = "all v2 keys were dropped outside of the log, as is done before an upgrade to 3.6, which " +
				"refuses them; where v2 clients are still in use, they are lost"
		}
		for _, r := range rows {
			in.add(&f, func() Evidence {
				return Evidence{Member: m.Label(), File: snap.File, Key: Bytes(r.key),
					Field: x.field, Observed: r.observed, Expected: r.expected, Show: showLogAs(m, "--snaps")}
			})
		}
		fs = append(fs, f)
	}
	return fs, ""
}

type v2Difference struct{ key, observed, expected string }

// differences lists rows of the member list and then keys that differ between the snapshot and w.
func (w *v2World) differences(v *dumplog.V2Store) (members, keys []v2Difference) {
	have := map[string]string{}
	for i := range v.Members {
		x := &v.Members[i]
		have["member "+x.ID.String()] = w.memberText(x)
	}
	for _, id := range v.Removed {
		have["removed "+id.String()] = "removed"
	}
	if v.Version != "" {
		have["version"] = v.Version
	}
	want := w.rows()
	rows := maps.Clone(have)
	maps.Copy(rows, want)
	for _, k := range slices.Sorted(maps.Keys(rows)) {
		if have[k] != want[k] && !w.unsure[k] && !w.fromBackup(k, want[k]) {
			members = append(members, v2Difference{k, orText(have[k], "absent"), orText(want[k], "absent")})
		}
	}
	present := map[string]bool{}
	for _, k := range v.UserKeys {
		present[k] = true
		if !w.keys[k] && !w.folders[k] && !w.doubtful(k) {
			keys = append(keys, v2Difference{k, "present", "absent: no request of the log wrote it"})
		}
	}
	for _, k := range slices.Sorted(maps.Keys(w.keys)) {
		if !present[k] && !w.doubtful(k) && !w.mayExpire[k] {
			keys = append(keys, v2Difference{k, "absent", "present: the log wrote it and did not delete it"})
		}
	}
	return members, keys
}

// fromBackup reports whether a row may come from the backup of a restore, because the log does not show it.
func (w *v2World) fromBackup(row, want string) bool {
	return w.restored && want == "" && (row == "version" || strings.HasPrefix(row, "removed "))
}
