package check

import (
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

// witnesses asks, in this order: the log, the rest of the same database, and the database one transaction earlier. The
// first that names a member decides; a majority never does.
func (in *Input) witnesses(bucket string, row *diff.Row, at []int) []witness {
	for _, ask := range []func(string, *diff.Row, []int) []witness{in.byReplay, in.byLog, in.byDatabase,
		in.byLastTransaction} {
		if ws := ask(bucket, row, at); len(ws) > 0 && len(ws) < len(at) {
			return ws
		}
	}
	return nil
}

// byReplay: rows that contradict the replay of the member's log.
func (in *Input) byReplay(bucket string, row *diff.Row, at []int) []witness {
	if in.Replay == nil || row.Kind == diff.PasswordRow {
		return nil
	}
	var out []witness
	for _, pos := range at {
		r := in.Replay.Members[pos]
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
func (in *Input) byLog(bucket string, row *diff.Row, at []int) []witness {
	if in.Replay == nil || in.Replay.Survey == nil {
		return nil
	}
	var want string
	var index uint64
	switch {
	case row.Kind == diff.PasswordRow:
		return in.passwordWitness(row)
	case bucket == "alarm":
		want, index = in.alarmByLog(string(row.Key))
	case bucket == "cluster" && string(row.Key) == "clusterVersion":
		want, index = in.versionByLog(in.appliedByAll(at))
	case bucket == "auth" && string(row.Key) == "authEnabled":
		return in.authWitness(row, at)
	case bucket == "lease" && row.Kind == diff.TTLRow:
		return in.ttlWitness(string(row.Key), at)
	case row.Kind == diff.WholeRow && (bucket == "members" || bucket == "members_removed"):
		return in.memberWitness(bucket, row, at)
	case row.Kind == diff.AttributesRow:
		want, index = in.publishedBy(string(row.Key), in.appliedByAll(at))
	}
	if index == 0 || index > in.appliedByAll(at) {
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

// appliedByAll is the index that all of them have certainly applied.
func (in *Input) appliedByAll(at []int) uint64 {
	low := in.Members[at[0]].AppliedMin
	for _, pos := range at {
		low = min(low, in.Members[pos].AppliedMin)
	}
	return low
}

func (in *Input) passwordWitness(row *diff.Row) []witness {
	var out []witness
	for _, p := range in.Diff.Passwords {
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
func (in *Input) alarmByLog(key string) (text string, index uint64) {
	for _, a := range in.Replay.Survey.Alarms() {
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
func (in *Input) publishedBy(id string, applied uint64) (text string, index uint64) {
	for member, starts := range in.Replay.Survey.Starts {
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
func (in *Input) versionByLog(applied uint64) (version string, index uint64) {
	for _, v := range in.Replay.Survey.Versions {
		if v.Index <= applied {
			version, index = v.Version, v.Index
		}
	}
	return version, index
}

// ttlWitness: a TTL below that of the grant, or a remaining TTL that no checkpoint sets.
func (in *Input) ttlWitness(key string, at []int) []witness {
	var out []witness
	for _, pos := range at {
		if in.Replay == nil {
			break
		}
		for _, l := range in.Replay.Members[pos].Leases {
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
func (in *Input) byDatabase(bucket string, row *diff.Row, at []int) []witness {
	var out []witness
	for _, pos := range at {
		m := in.Members[pos]
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
			if v := &m.DB.KV.Violations[i]; v.Rule == dumpdb.RuleLease && dumpdb.ID(v.Lease).String() == string(row.Key) {
				out = append(out, witness{pos, fmt.Sprintf("its live key %q names the lease", v.Key), "granted", false})
				break
			}
		}
	}
	return out
}

// byLastTransaction: the database held one transaction earlier, at the same consistent index, what others hold now, and
// the entry at that index does not touch the row. Up to 3.4 the index does not change with such rows, so nothing
// follows there.
func (in *Input) byLastTransaction(bucket string, row *diff.Row, at []int) []witness {
	var out []witness
	for _, pos := range at {
		m := in.Members[pos]
		if !m.Version.Follows(release.IndexWithEveryEntry) || in.Replay == nil || in.Replay.Survey == nil ||
			!in.Replay.Covers(m.AppliedMin-1, m.AppliedMin) ||
			in.Replay.Survey.TouchedBetween(replay.Row{Bucket: bucket, Key: string(row.Key)}, m.AppliedMin-1,
				m.AppliedMin) > 0 {
			continue
		}
		if in.stateBefore(m) == nil {
			continue
		}
		was, held := in.rowsBefore(m, bucket, row.Kind)[string(row.Key)]
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
func (in *Input) memberWitness(bucket string, row *diff.Row, at []int) []witness {
	last := in.lastChangeOf(string(row.Key), in.appliedByAll(at))
	if last == nil {
		return in.purgedMemberWitness(bucket, row, at)
	}
	removed := last.Change.Type == dumplog.ConfChangeRemoveNode
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
func (in *Input) purgedMemberWitness(bucket string, row *diff.Row, at []int) []witness {
	var out []witness
	for _, pos := range at {
		m := in.Members[pos]
		is := func(id dumplog.ID) bool { return id.String() == string(row.Key) }
		snap := m.NewestSnap()
		switch {
		case row.Cells[pos] != nil || !m.ConfigurationCurrent():
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

// lastChangeOf is the last addition or removal of a member in any log up to an index, nil when no log holds one.
func (in *Input) lastChangeOf(id string, applied uint64) *evidence.ConfEntry {
	var last *evidence.ConfEntry
	for _, m := range in.Members {
		if !m.HasWAL() {
			continue
		}
		for i := range m.WAL.Conf {
			c := &m.WAL.Conf[i]
			if c.Change.NodeID.String() == id && c.Index <= min(applied, m.Commit) && !c.Refused &&
				c.Change.Type != dumplog.ConfChangeUpdateNode && (last == nil || c.Index > last.Index) {
				last = c
			}
		}
	}
	return last
}
