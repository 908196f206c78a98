package replay

import (
	"slices"

	"github.com/etcd-medic/etcd-medic/compare/apply"
	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/dumplog"
)

// Row names a row of a small bucket as the comparison does; an empty Key means all rows of the bucket.
type Row struct{ Bucket, Key string }

// touchKey is the row in the set of those that open entries change.
func (r Row) touchKey() string { return r.Bucket + "/" + r.Key }

// maxRowTouches bounds the entries kept with the rows that they may change; above it whole buckets count as touched.
const maxRowTouches = 200_000

// rowTouches are the entries from the lowest applied index on, by the rows of small buckets that they may change.
// Indexes are in order.
type rowTouches struct {
	at   map[Row][]uint64
	kept int
	from uint64
}

func newRowTouches(from uint64) *rowTouches {
	return &rowTouches{at: map[Row][]uint64{}, from: from}
}

func (t *rowTouches) note(index uint64, r *dumplog.Request) {
	if index < t.from {
		return
	}
	for _, row := range rowsOfRequest(r) {
		if t.kept >= maxRowTouches {
			row.Key = ""
			if at := t.at[row]; len(at) > 0 {
				at[len(at)-1] = index // the last one represents all that are not kept
				continue
			}
		}
		t.at[row] = append(t.at[row], index)
		t.kept++
	}
}

// between returns an entry above from and up to to that may change the row, 0 when there is none.
func (t *rowTouches) between(row Row, from, to uint64) uint64 {
	for _, r := range []Row{row, {Bucket: row.Bucket}} {
		at := t.at[r]
		if i, _ := slices.BinarySearch(at, from+1); i < len(at) &&
			(at[i] <= to || r.Key == "" && t.kept >= maxRowTouches) {
			return at[i]
		}
	}
	return 0
}

// TouchedBetween returns an entry above index from and up to index to that may change a row of a small bucket; 0 if
// there is none. Entries below the lowest applied index of all databases are not kept. It proves nothing if no log has
// the entries; see Covers.
func (s *Survey) TouchedBetween(row Row, from, to uint64) uint64 {
	if s.rows == nil {
		return 0
	}
	return s.rows.between(row, from, to)
}

// Covers reports whether the logs hold every entry above from and up to to.
func (r *Result) Covers(from, to uint64) bool {
	if from >= to {
		return true
	}
	if r.First == 0 || r.First > from+1 || r.Last < to {
		return false
	}
	return !slices.ContainsFunc(r.Gaps, func(g Gap) bool { return g.From <= to && g.To > from })
}

// ChangesAfter reports whether entries above an index can have changed data: one in the logs does, or the logs lack
// some, up to what a running member says that it has committed.
func (r *Result) ChangesAfter(index, said uint64) bool {
	return r.Survey == nil || r.First == 0 || r.Survey.LastChange > index || !r.Covers(index, max(r.Last, said))
}

// UncommittedAfter counts the entries above an index up to the last one that changes data and that no source shows to
// be committed.
func (r *Result) UncommittedAfter(index uint64) uint64 {
	if r.Survey == nil || r.Survey.LastUncommitted <= index {
		return 0
	}
	return r.Survey.LastUncommitted - index
}

// rowsOfRequest lists the rows of small buckets that a request may change.
func rowsOfRequest(r *dumplog.Request) []Row {
	lease := func(id int64) Row { return Row{"lease", dumplog.ID(uint64(id)).String()} }
	switch {
	case r.LeaseGrant != nil:
		return []Row{lease(r.LeaseGrant.ID)}
	case r.LeaseRevoke != nil:
		return []Row{lease(r.LeaseRevoke.ID)}
	case r.LeaseCheckpoint != nil:
		var out []Row
		for _, c := range r.LeaseCheckpoint.Checkpoints {
			out = append(out, lease(c.ID))
		}
		return out
	case r.Alarm != nil && !apply.ChangesAlarms(r.Alarm):
		return nil
	case r.Alarm != nil:
		return []Row{{"alarm", r.Alarm.MemberID.String() + " " + evidence.AlarmName(r.Alarm.Alarm)}}
	case r.ConfChange != nil:
		id := r.ConfChange.NodeID.String()
		return []Row{{"members", id}, {"members_removed", id}}
	case r.Publishes() != nil:
		return []Row{{"members", r.Publishes().MemberID.String()}}
	case r.ClusterVer != nil, setsVersion(r.V2):
		return []Row{{"cluster", "clusterVersion"}}
	case r.Downgrade != nil:
		return []Row{{"cluster", "downgrade"}}
	case r.Kind.ChangesAuth():
		return authRowsOf(r)
	}
	var out []Row
	for _, b := range touches(r) {
		out = append(out, Row{Bucket: b})
	}
	return out
}

// authRowsOf lists the rows of an auth request. Deleting a role removes it from every user that has it.
func authRowsOf(r *dumplog.Request) []Row {
	out := []Row{{"auth", "authRevision"}}
	switch {
	case r.Kind == dumplog.KindAuthEnable, r.Kind == dumplog.KindAuthDisable:
		return append(out, Row{"auth", "authEnabled"})
	case r.Kind == dumplog.KindAuthRoleDelete, r.Auth == nil:
		out = append(out, Row{Bucket: "authUsers"})
	case r.Auth.User != "":
		return append(out, Row{"authUsers", r.Auth.User})
	}
	if r.Auth == nil || r.Auth.Role == "" {
		return append(out, Row{Bucket: "authRoles"})
	}
	return append(out, Row{"authRoles", r.Auth.Role})
}
