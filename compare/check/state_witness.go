package check

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/etcd-medic/etcd-medic/compare/diff"
	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/compare/replay"
	"github.com/etcd-medic/etcd-medic/dumpdb"
	"github.com/etcd-medic/etcd-medic/dumplog"
	"github.com/etcd-medic/etcd-medic/release"
)

// witness shows that a member's version of a row is wrong.
type witness struct {
	pos           int
	why, expected string
	// byHand is true when the last transaction of the database shows it.
	byHand bool
}

// rowWitnesses answers which member holds the right state of a row that differs.
type rowWitnesses struct {
	Members Sources
	Replay  *replay.Result
	Diff    *diff.Result
	ctx     context.Context //nolint:containedctx // for one question
	earlier *earlierStates
	// atRevision are the entries whose records members hold differently, nil until they are asked for.
	atRevision map[memberRevision]*replay.Event
}

type memberRevision struct {
	pos  int
	main int64
}

// witnesses asks, in this order: the log, the rest of the same database, the auth revision, and the database one
// transaction earlier. The first that names a member decides; a majority never does.
func (rw *rowWitnesses) witnesses(bucket string, row *diff.Row, at []int) []witness {
	for _, ask := range []func(string, *diff.Row, []int) []witness{rw.byReplay, rw.byLog, rw.byDatabase,
		rw.byAuthRevision, rw.byLastTransaction} {
		if ws := ask(bucket, row, at); len(ws) > 0 && len(ws) < len(at) {
			return ws
		}
	}
	return nil
}

// byReplay: rows that contradict the replay of the member's log.
func (rw *rowWitnesses) byReplay(bucket string, row *diff.Row, at []int) []witness {
	if rw.Replay == nil || row.Kind == diff.PasswordRow {
		return nil
	}
	var out []witness
	for _, pos := range at {
		r := rw.Replay.Members[pos]
		if !r.Checked {
			continue
		}
		for _, d := range r.StateDiffs {
			if d.Bucket == bucket && sameRowKey(d.Key, string(row.Key)) {
				out = append(out, witness{pos, fmt.Sprintf("the log gives row %s another content", d.Key), d.Expected,
					false})
				break
			}
		}
		if bucket != "lease" || len(out) > 0 && out[len(out)-1].pos == pos {
			continue
		}
		for _, x := range r.LeaseFaults {
			if dumplog.ID(uint64(x.ID)).String() != string(row.Key) || row.Kind != diff.WholeRow {
				continue
			}
			if x.Kept && x.Reason != replay.ReasonNone && x.Reason != replay.ReasonLease {
				continue // its release refuses the revoke
			}
			w := witness{pos, fmt.Sprintf("entry %d granted the lease and none ended it", x.Granted), "granted", false}
			if x.Kept {
				w = witness{pos, fmt.Sprintf("entry %d revoked the lease", x.Index), "absent", false}
			}
			out = append(out, w)
			break
		}
	}
	return out
}

// sameRowKey compares the key of a row as the replay names it and as the comparison does: they differ for alarms.
func sameRowKey(a, b string) bool {
	if a == b {
		return true
	}
	name, id, ok := strings.Cut(a, " of ")
	return ok && b == id+" "+name
}

// byLog: the last entries about the row in the log, which need no state from before the log.
func (rw *rowWitnesses) byLog(bucket string, row *diff.Row, at []int) []witness {
	if rw.Replay == nil || rw.Replay.Survey == nil {
		return nil
	}
	var want string
	var index uint64 // of the last entry about the row, as far as the logs show it
	switch {
	case row.Kind == diff.PasswordRow:
		return passwordWitness(rw.Diff, row)
	case bucket == "alarm":
		want, index = alarmByLog(rw.Replay, string(row.Key))
	case bucket == "cluster" && string(row.Key) == "clusterVersion":
		want, index = versionByLog(rw.Replay.Survey.Versions, rw.Members.databases().appliedByAll(at))
	case bucket == "auth" && string(row.Key) == "authEnabled":
		return rw.authWitness(row, at)
	case bucket == "lease" && row.Kind == diff.TTLRow:
		return ttlWitness(rw.Replay, string(row.Key), at)
	case row.Kind == diff.WholeRow && (bucket == "members" || bucket == "members_removed"):
		return rw.memberWitness(bucket, row, at)
	case row.Kind == diff.AttributesRow:
		want, index = publishedBy(rw.Replay, string(row.Key), rw.Members.databases().appliedByAll(at))
	}
	applied := rw.Members.databases().appliedByAll(at)
	if index == 0 || index > applied || disputed(rw.Replay, index) || !rw.Replay.Covers(index, applied) {
		return nil
	}
	var out []witness
	for _, pos := range at {
		if text := cellOr(row.Cells[pos], "absent"); text != want {
			out = append(out, witness{pos, fmt.Sprintf("entry %d says %s", index, want), want, false})
		}
	}
	return out
}

func cellOr(c *diff.Cell, absent string) string {
	if c == nil {
		return absent
	}
	return c.Text
}

func passwordWitness(d *diff.Result, row *diff.Row) []witness {
	var out []witness
	for _, p := range d.Passwords {
		if p.User != string(row.Key) {
			continue
		}
		for _, pos := range p.Wrong {
			out = append(out, witness{pos, p.Why, "the hash that the log gives", false})
		}
	}
	return out
}

// alarmByLog returns the state of the alarm after the last entry about it.
func alarmByLog(rp *replay.Result, key string) (text string, index uint64) {
	for _, a := range rp.Survey.Alarms() {
		if a.Member.String()+" "+evidence.AlarmName(a.Type) != key {
			continue
		}
		if a.Raised {
			return "raised", a.Index
		}
		return "absent", a.Index
	}
	return "", 0
}

// publishedBy is what the member last published about itself up to an index.
func publishedBy(rp *replay.Result, id string, applied uint64) (text string, index uint64) {
	for member, starts := range rp.Survey.Starts {
		if member.String() != id {
			continue
		}
		for _, s := range starts {
			if s.Index <= applied {
				text, index = diff.AttributesText(s.Name, s.ClientURLs), s.Index
			}
		}
	}
	return text, index
}

// versionByLog is the cluster version that the log last set up to an index.
func versionByLog(set []replay.VersionSet, applied uint64) (version string, index uint64) {
	for _, v := range set {
		if v.Index <= applied {
			version, index = v.Version, v.Index
		}
	}
	return version, index
}

// ttlWitness: a TTL below that of the grant, or a remaining TTL that no checkpoint sets.
func ttlWitness(rp *replay.Result, key string, at []int) []witness {
	var out []witness
	for _, pos := range at {
		if rp == nil {
			break
		}
		for _, l := range rp.Members[pos].Leases {
			switch {
			case dumplog.ID(uint64(l.ID)).String() != key:
			case l.Stored < l.Asked:
				out = append(out, witness{pos, fmt.Sprintf("entry %d asks for %d s", l.Index, l.Asked),
					fmt.Sprintf("at least %d s", l.Asked), false})
			case l.NeverAsked:
				out = append(out, witness{pos, fmt.Sprintf("no entry after %d sets this remaining TTL", l.Index),
					"no remaining TTL, or one of a checkpoint", false})
			}
		}
	}
	return out
}

// byDatabase: other parts of the member's database contradict the row: live keys name a lease that does not exist, or a
// bucket that every server creates is missing.
func (rw *rowWitnesses) byDatabase(bucket string, row *diff.Row, at []int) []witness {
	var out []witness
	for _, pos := range at {
		m := rw.Members[pos]
		if row.Cells[pos] != nil {
			continue
		}
		if slices.Contains(m.DB.Handle.MissingBuckets(), bucket) &&
			slices.ContainsFunc(at, func(o int) bool { return row.Cells[o] != nil }) {
			out = append(out, witness{pos, "the bucket, which every server makes, is not there", "present", false})
			continue
		}
		if bucket != "lease" || m.DB.KV == nil {
			continue
		}
		for i := range m.DB.KV.Violations {
			if v := &m.DB.KV.Violations[i]; v.Rule == dumpdb.RuleLease &&
				dumpdb.ID(v.Lease).String() == string(row.Key) {
				out = append(out, witness{pos, fmt.Sprintf("its live key %q names the lease", v.Key), "granted", false})
				break
			}
		}
	}
	return out
}

// byAuthRevision: each request that adds a user or a role raises the auth revision, which begins with 1. At 1 such a
// row that others lack was added to the database. 3.0 had no revision, but rows of that time are on all members.
func (rw *rowWitnesses) byAuthRevision(bucket string, row *diff.Row, at []int) []witness {
	if bucket != "authUsers" && bucket != "authRoles" || row.Kind != diff.WholeRow {
		return nil
	}
	var out []witness
	for _, pos := range at {
		if a := &rw.Members[pos].DB.Auth; !a.HasRevision || a.Revision != 1 {
			return nil
		}
		if row.Cells[pos] != nil {
			out = append(out, witness{pos, "its auth revision is 1, so that no request has added a user or a role",
				"absent", false})
		}
	}
	return out
}

// byLastTransaction: the database held one transaction earlier, at the same consistent index, what others hold now, and
// the entry at that index does not touch the row. Up to 3.4 the index does not change with such rows, so nothing
// follows there.
func (rw *rowWitnesses) byLastTransaction(bucket string, row *diff.Row, at []int) []witness {
	var out []witness
	for _, pos := range at {
		m := rw.Members[pos]
		if !m.Version.Follows(release.IndexWithEveryEntry) || rw.Replay == nil || rw.Replay.Survey == nil ||
			!rw.Replay.Covers(m.AppliedMin-1, m.AppliedMin) ||
			rw.Replay.Survey.TouchedBetween(replay.Row{Bucket: bucket, Key: string(row.Key)}, m.AppliedMin-1,
				m.AppliedMin) > 0 {
			continue
		}
		if rw.earlier.stateBefore(m) == nil {
			continue
		}
		was, held := rw.earlier.rowsBefore(m, bucket, row.Kind)[string(row.Key)]
		if !held {
			was = "absent"
		}
		now := cellOr(row.Cells[pos], "absent")
		others := slices.ContainsFunc(at, func(o int) bool { return o != pos && cellOr(row.Cells[o], "absent") == was })
		if was != now && others {
			out = append(out, witness{pos, "its last transaction changed the row without an entry of the log: before " +
				"that it held what others hold", was, true})
		}
	}
	return out
}

// memberWitness: the last conf change about the member that servers did not refuse says whether it is listed, or listed
// as removed.
func (rw *rowWitnesses) memberWitness(bucket string, row *diff.Row, at []int) []witness {
	applied := rw.Members.databases().appliedByAll(at)
	last := rw.Members.logs().lastChangeOf(string(row.Key), applied)
	removed := last != nil && last.Change.Type == dumplog.ConfChangeRemoveNode
	switch {
	case last == nil, !removed && !rw.Replay.Covers(last.Index, applied): // it may have been removed where no log is
		return rw.purgedMemberWitness(bucket, row, at)
	case disputed(rw.Replay, last.Index):
		return nil
	}
	want := "listed"
	if removed != (bucket == "members_removed") {
		want = "absent"
	}
	var out []witness
	for _, pos := range at {
		if (row.Cells[pos] != nil) != (want == "listed") {
			verb := "added"
			if removed {
				verb = "removed"
			}
			out = append(out, witness{pos, fmt.Sprintf("entry %d %s the member", last.Index, verb), want, false})
		}
	}
	return out
}

// purgedMemberWitness: where no log holds a change of the member, raft's configuration shows that it must be listed,
// and the newest snapshot that it was removed.
func (rw *rowWitnesses) purgedMemberWitness(bucket string, row *diff.Row, at []int) []witness {
	var out []witness
	for _, pos := range at {
		m := rw.Members[pos]
		is := func(id dumplog.ID) bool { return id.String() == string(row.Key) }
		snap := m.NewestSnap()
		switch {
		case row.Cells[pos] != nil || !m.ListComparable():
		case bucket == "members" && (slices.ContainsFunc(m.Membership.Voters, is) ||
			slices.ContainsFunc(m.Membership.Learners, is)):
			out = append(out, witness{pos, "the member belongs to raft's configuration", "listed", false})
		case bucket == "members_removed" && snap != nil && snap.V2 != nil && slices.ContainsFunc(snap.V2.Removed, is):
			out = append(out, witness{pos, "the v2 store of its newest snapshot lists the member as removed", "listed",
				false})
		}
	}
	return out
}
